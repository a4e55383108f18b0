"""The store for clusters. It needs PostgreSQL 14 or newer, and any number of nodes share it."""

from fairwarning.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
