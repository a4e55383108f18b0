"""The store of clusters: PostgreSQL 14 or newer, any number of equal nodes."""

from fairwarning.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
