"""How the browser libraries under static/vendor are fetched and built (docs/decisions)."""
