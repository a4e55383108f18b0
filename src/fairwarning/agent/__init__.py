"""The agent of a VM drains the workload before each event, and restores it afterwards.

It uses only the metadata protocol, so it works on Azure and in a Fairwarning fleet. It imports
nothing from the server.
"""
