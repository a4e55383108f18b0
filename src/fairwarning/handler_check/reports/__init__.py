"""The formats of a check's report, for people (`text`, `html`) and for programs (`junit`)."""
