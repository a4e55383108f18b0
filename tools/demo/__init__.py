"""Records the demo that the README shows."""
