"""The client, the agent and the server share these modules. They import no code of the server."""
