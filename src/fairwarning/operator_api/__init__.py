"""What people and tools use: the operator API, its access rules, and its health."""
