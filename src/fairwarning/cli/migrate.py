"""`fairwarning migrate` brings a store to the schema of this version, and shows what it does."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from fairwarning import __version__
from fairwarning.boot import BadStoreUrl
from fairwarning.cli.backup import explained_problems, json_option, place_of_store, store_option
from fairwarning.cli.output import echo_json
from fairwarning.cli.store_options import store_file_option, store_of
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import one_line
from fairwarning.stores.migrations import (
    Migration,
    Report,
    RunningNode,
    Schema,
    load_migrations,
    missing_of,
    refuse_harm,
)
from fairwarning.stores.sqlite import schema as of_sqlite
from fairwarning.stores.sqlite.connection import FileLock, store_down

T = TypeVar("T")


class Interrupted(Problem):
    """Somebody pressed Ctrl-C."""

    exit_code = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    kind: str
    """The kind of store: `sqlite` or `postgresql`."""
    schema: Schema
    nodes: Sequence[RunningNode]
    newest: int
    """The newest schema that this version knows."""
    missing: Sequence[Migration]


@click.command(
    epilog="""\b
Examples:
  fairwarning migrate --dry-run
  fairwarning migrate --store sqlite:///fairwarning.db
  fairwarning migrate --store sqlite:///fairwarning.db --no-backup --json
"""
)
@store_option("Store to migrate: sqlite:///PATH or postgresql://USER@HOST/DATABASE")
@store_file_option
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@click.option(
    "--no-backup", is_flag=True, help="Do not make a copy of an SQLite file before it is migrated."
)
@json_option
def migrate(
    store_url: str | None, store_file: Path | None, dry_run: bool, no_backup: bool, as_json: bool
) -> None:
    """Migrate the store to the schema of this version, while nodes that use PostgreSQL run.

    Each step is done as a whole or not at all, so Ctrl-C is safe at any time. An expand step only
    adds, and older nodes go on working. A contract step removes what they need: it is refused while
    such nodes run, and names them. When the first node of a new version starts, it runs the same
    steps.
    """
    with explained_problems():
        kind, place = place_of_store(store_of(store_url, store_file))
        plan = _plan(kind, place)
    if not as_json:
        _show_plan(plan)
    try:
        with explained_problems():
            report = None if dry_run else _run(plan, place, makes_copy=not no_backup)
            if dry_run:
                for migration in plan.missing:
                    refuse_harm(migration, plan.nodes)
    except KeyboardInterrupt:
        raise Interrupted(
            "stopped; the steps that were done stay, and nothing of the others was kept"
        ) from None
    if as_json:
        echo_json(_to_json(plan, report))
    elif report is not None and report.seconds:
        click.echo(f"The store has schema {report.after} now.")


def _plan(kind: str, place: str) -> _Plan:
    migrations = load_migrations("postgres" if kind == "postgresql" else kind)
    nodes: Sequence[RunningNode] = ()
    if kind == "sqlite":
        where = place
        schema = _with_file(place, of_sqlite.read_schema)
    else:
        from fairwarning.stores.postgres.schema import read_schema  # noqa: PLC0415

        where = "the database"
        schema, nodes = asyncio.run(read_schema(_conninfo(place)))
    missing = missing_of(migrations, schema, where)
    return _Plan(kind=kind, schema=schema, nodes=nodes, newest=len(migrations), missing=missing)


def _run(plan: _Plan, place: str, *, makes_copy: bool) -> Report:
    if plan.kind == "sqlite":
        migrations = load_migrations("sqlite")

        def migrate_file(path: Path) -> Report:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(path.with_name(f"{path.name}.lock"))
            lock.acquire()
            try:
                return of_sqlite.migrate(path, migrations, tell=_tell, makes_copy=makes_copy)
            finally:
                lock.release()

        return _with_file(place, migrate_file)
    from fairwarning.stores.postgres.schema import migrate as migrate_database  # noqa: PLC0415

    return asyncio.run(migrate_database(_conninfo(place), load_migrations("postgres"), tell=_tell))


def _tell(line: str) -> None:
    click.echo(one_line(line), err=True)


def _conninfo(url: str) -> str:
    import psycopg  # noqa: PLC0415

    from fairwarning.stores.postgres.database import conninfo_of  # noqa: PLC0415
    from fairwarning.stores.postgres.errors import explained  # noqa: PLC0415

    try:
        return conninfo_of(url)
    except psycopg.Error as error:
        raise explained(error) from error


def _with_file(place: str, work: Callable[[Path], T]) -> T:
    """Calls `work` with the path of an SQLite file. Raises KeyboardInterrupt or StoreDown."""
    path = Path(place)
    try:
        return work(path)
    except (sqlite3.Error, OSError) as error:
        # Ctrl-C ends the statement that runs.
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            raise KeyboardInterrupt from None
        raise store_down(error, path) from error
    except UnicodeEncodeError:
        raise BadStoreUrl("--store: no file can have this name") from None


def _show_plan(plan: _Plan) -> None:
    click.echo(
        f"The store has schema {plan.schema.version}, and fairwarning {__version__} knows "
        f"{plan.newest}."
    )
    for migration in plan.missing:
        effect = (
            "expand; older nodes go on working"
            if migration.oldest_node is None
            else f"contract; nodes must know schema {migration.oldest_node}"
        )
        click.echo(one_line(f"{migration.title}: {effect}"))
    for node in plan.nodes:
        click.echo(one_line(f"{node.title} runs, and knows schema {node.schema}"))
    if not plan.missing:
        click.echo("There is nothing to do.")


def _to_json(plan: _Plan, report: Report | None) -> dict[str, Any]:
    seconds = {} if report is None else report.seconds
    return {
        "store": plan.kind,
        "schema": plan.schema.version if report is None else report.after,
        "floor": plan.schema.floor,
        "newest": plan.newest,
        "steps": [
            {
                "schema": each.version,
                "name": each.name,
                "kind": "expand" if each.oldest_node is None else "contract",
                "oldestNode": each.oldest_node,
                "seconds": round(seconds[each.version], 3) if each.version in seconds else None,
            }
            for each in plan.missing
        ],
        "nodes": [
            {
                "name": each.name,
                "host": each.host,
                "pid": each.pid,
                "program": each.program,
                "schema": each.schema,
                "seenSecondsAgo": round(each.seen_s, 1),
            }
            for each in plan.nodes
        ],
    }
