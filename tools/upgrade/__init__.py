"""The check of an upgrade under load."""
