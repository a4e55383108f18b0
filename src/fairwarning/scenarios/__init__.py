"""Rehearsals: stories of what happens to machines, played on a server and told as they go."""
