"""The portal with a day's life in it, and pictures of it for the documentation."""
