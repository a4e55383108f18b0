"""Measures how quickly the portal paints and updates."""
