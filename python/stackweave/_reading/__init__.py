"""Reads recordings: `Recording`, and the views of it."""
