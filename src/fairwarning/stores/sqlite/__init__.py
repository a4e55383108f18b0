"""The embedded store: one file, one process, durable when it answers."""

from fairwarning.stores.sqlite.connection import StoreInUse
from fairwarning.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "StoreInUse"]
