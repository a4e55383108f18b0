"""Compares the metadata endpoint with nginx, Go and Flask; see README.md."""
