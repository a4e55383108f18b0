"""The agent: on a VM, it gets the workload out of the way of each event, and back afterwards.

It knows only the wire, so it works on Azure itself as on a Fairwarning fleet, and it needs
nothing of the server.
"""
