"""What really freezes, reboots, redeploys, stops or deletes an instance."""
