"""Measures what other instances notice while the server is attacked."""
