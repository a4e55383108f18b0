"""Checks that the seed documents' samples run as printed; see README.md."""
