"""This package checks that a driver keeps the rules of docs/drivers.md, even if processes die."""
