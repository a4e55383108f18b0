"""This package reads a fleet file, compares it with the fleet, and applies it."""
