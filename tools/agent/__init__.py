"""The agent and the client beside real programs; `./test agent` runs it all."""
