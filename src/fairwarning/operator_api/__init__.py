"""The operator API for people and tools: its routes, access rules, limits and health."""
