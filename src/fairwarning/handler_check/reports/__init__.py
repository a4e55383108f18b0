"""The report of a check, for people (`text`, `html`) and for programs (`junit`)."""
