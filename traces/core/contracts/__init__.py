"""Contracts of tasks: the language of docs/design.md section 5."""
