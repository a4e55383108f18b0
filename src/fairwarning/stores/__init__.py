"""Stores keep scopes, the journal and records: in memory, in SQLite or in PostgreSQL."""
