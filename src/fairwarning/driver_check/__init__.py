"""The check of a driver: whether it keeps the rules of docs/drivers.md, whatever dies."""
