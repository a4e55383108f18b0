"""Reads scenarios, plays them on a server, and records what a real VM sees."""
