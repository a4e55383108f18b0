"""Knows the members of Azure's resource types, as Azure publishes them."""
