"""A portal with a day of events in it, and screenshots of it for the documentation."""
