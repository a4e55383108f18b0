"""Drivers really freeze, reboot, redeploy, stop or delete an instance."""
