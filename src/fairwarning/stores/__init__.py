"""Stores keep scopes, the journal and records, and decide nothing: memory, SQLite, PostgreSQL."""
