"""Pages that join what happened with what is made of it."""
