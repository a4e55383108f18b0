"""Fairwarning: no machine goes down without fair warning."""

__version__ = "0.1.0"
