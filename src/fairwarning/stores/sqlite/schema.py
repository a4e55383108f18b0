"""Brings the file up to the schema that this code knows, or makes it."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from fairwarning.stores.migrations import Migration, missing_of
from fairwarning.stores.sqlite.connection import connect
from fairwarning.stores.sqlite.queries import QUERIES


def migrate(path: Path, migrations: Sequence[Migration]) -> None:
    """Raises SchemaTooNew. A migration that fails leaves the file as the one before it did."""
    with closing(connect(path)) as connection:
        for migration in missing_of(migrations, _version(connection), str(path)):
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{migration.sql}\n"
                f"INSERT INTO schema_version (version) VALUES ({migration.version:d});\nCOMMIT;"
            )


def _version(connection: sqlite3.Connection) -> int:
    return _value(connection, "schema_version") if _value(connection, "has_schema") else 0


def _value(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(QUERIES[name]).fetchone()[0])
