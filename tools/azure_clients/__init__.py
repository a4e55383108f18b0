"""Checks clients of Azure other than az."""
