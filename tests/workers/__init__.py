"""Workers, the engine's process that feeds them, and their supervisor."""
