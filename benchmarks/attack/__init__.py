"""What other instances notice while somebody attacks the server."""
