"""The endpoint that every VM talks to: Azure's shapes and errors, word for word."""
