"""The metadata endpoint beside nginx, Go and Flask: see README.md."""
