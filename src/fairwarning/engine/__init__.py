"""The engine is the only writer: it runs commands on scopes, keeps timers and calls drivers."""
