"""Measures what the agent costs the machine that it runs on."""
