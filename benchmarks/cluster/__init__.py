"""Measures several nodes on one PostgreSQL, and several workers of one node."""
