"""What client, agent and server share."""
