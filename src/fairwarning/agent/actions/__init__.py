"""What the agent can do to a workload, one module a kind. `kinds.py` has them all."""
