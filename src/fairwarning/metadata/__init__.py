"""The metadata endpoint answers every VM with Azure's documents and errors, word for word."""
