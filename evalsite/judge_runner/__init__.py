"""Judges asked through an endpoint that the operator gives. Off where none is given."""
