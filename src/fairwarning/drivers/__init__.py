"""What really freezes, reboots, redeploys or deletes an instance."""
