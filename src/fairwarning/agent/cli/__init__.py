"""The commands of the agent."""
