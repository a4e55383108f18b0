"""What the portal costs, and how alive it is."""
