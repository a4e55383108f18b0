"""Workers are processes that only answer polls. The engine's process feeds them with documents."""
