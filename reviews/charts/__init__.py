"""Figures for Plotly, made here and sent as JSON. Every text in them is escaped."""
