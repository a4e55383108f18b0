"""What the agent costs the machine that it is on."""
