"""What very large fleets cost, with the real program in its own processes."""
