"""Checks the agent as a service of a real systemd, in a virtual machine: `./test systemd`."""
