"""Measures what the pytest fixture costs a test."""
