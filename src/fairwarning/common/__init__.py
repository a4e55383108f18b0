"""Client, agent and server share these modules, which import nothing of the server."""
