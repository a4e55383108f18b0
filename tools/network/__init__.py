"""The recipes of docs/network.md in network namespaces; `./test network` runs them."""
