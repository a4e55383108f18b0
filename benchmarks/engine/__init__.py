"""What a durable transition costs, and whether it costs more in a larger fleet."""
