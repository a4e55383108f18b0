"""The embedded store keeps everything in one file, which only one process may use."""

from fairwarning.stores.sqlite.connection import StoreInUse
from fairwarning.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "StoreInUse"]
