"""Runs the live check on a cluster while the database, the network, disks and clocks fail."""
