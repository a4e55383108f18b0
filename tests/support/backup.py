"""Saves the rows of all tables of PostgreSQL, and restores them while nodes are running."""

from collections.abc import Sequence

import psycopg

_TABLES = ("records", "event_instances", "addresses", "events", "journal", "rosters", "scopes")
"""All tables in the order in which they can be emptied."""


class Backup:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def save(self) -> None:
        await self._run(*(f"CREATE TABLE saved_{name} AS TABLE {name}" for name in _TABLES))

    async def restore(self, *, lower_by: int = 0, cuts_off: bool = False) -> None:
        """Restores all rows in one commit.

        The journal's numbers go on `lower_by` that much lower and are used again, as on a standby
        that takes over without the lost transactions, or on a new server. `cuts_off` ends the
        connections of all nodes, as such a change does.
        """
        await self._run(
            *(f"DELETE FROM {name}" for name in _TABLES),
            *(
                f"INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * FROM saved_{name}"
                for name in reversed(_TABLES)
            ),
            "CREATE OR REPLACE FUNCTION journal_number(xid8) RETURNS bigint LANGUAGE sql "
            f"IMMUTABLE PARALLEL SAFE RETURN $1::text::bigint - {lower_by}",
        )
        if cuts_off:
            await self._run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    async def lost(self) -> int:
        """Returns how many transaction numbers were given out since it was saved."""
        rows = await self._run(
            "SELECT journal_number(pg_current_xact_id()) - max(xid) FROM saved_journal"
        )
        return int(str(rows[0][0]))

    async def _run(self, *statements: str) -> Sequence[tuple[object, ...]]:
        async with await psycopg.AsyncConnection.connect(self._dsn) as connection:
            for statement in statements:
                cursor = await connection.execute(statement.encode())
            return await cursor.fetchall() if cursor.description else []
