"""Runs the server on PostgreSQL as it is run for real: with TLS, PgBouncer and standbys."""
