"""The metadata endpoint answers the VMs' requests with the same documents and errors as Azure."""
