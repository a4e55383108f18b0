"""Runs the live check on a cluster, and does to it what happens to clusters."""
