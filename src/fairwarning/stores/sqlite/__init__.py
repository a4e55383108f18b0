"""The embedded store keeps all in one file, for one process, and answers once it is durable."""

from fairwarning.stores.sqlite.connection import StoreInUse
from fairwarning.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "StoreInUse"]
