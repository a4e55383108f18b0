"""The agent of a VM drains the workload before each event, and restores it afterwards.

It knows only the wire, so it works on Azure itself as on a Fairwarning fleet, and it needs
nothing of the server.
"""
