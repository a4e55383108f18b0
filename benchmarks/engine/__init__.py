"""Measures what a durable transition costs, also in a large fleet."""
