"""This package checks an upgrade under load."""
