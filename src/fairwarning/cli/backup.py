"""`fairwarning backup`, `restore` and `verify` save a store, put it back, and check a backup."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from fairwarning.boot import BadStoreUrl, default_store_url, sqlite_file
from fairwarning.cli.output import echo_json
from fairwarning.cli.store_options import STORE_VARIABLE, store_file_option, store_of
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import counted, one_line
from fairwarning.common.store_urls import is_postgres
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.backup_file import BadBackup, Contents
from fairwarning.stores.sqlite import backup as of_sqlite
from fairwarning.stores.sqlite.connection import MAGIC

_file_argument = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def store_option(told: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option --store, whose help begins with `told`."""
    return click.option(
        "--store",
        "store_url",
        envvar=STORE_VARIABLE,
        metavar="URL",
        help=f"{told} (default: FAIRWARNING_STORE, or the SQLite file in your data folder).",
    )


@click.command(
    epilog="""\b
Examples:
  fairwarning backup monday.backup
  fairwarning backup monday.backup --store sqlite:///fairwarning.db --force
"""
)
@_file_argument
@store_option("Store to save: sqlite:///PATH or postgresql://USER@HOST/DATABASE")
@store_file_option
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@json_option
def backup(
    file: Path, store_url: str | None, store_file: Path | None, force: bool, as_json: bool
) -> None:
    """Save the store to FILE while the server goes on, and check the copy.

    It talks to the store itself, not to the server, so run it where the store can be reached. A
    plain copy of the file of a running server lacks its last changes; this has them.
    """
    with explained_problems():
        kind, place = place_of_store(store_of(store_url, store_file))
        if kind == "sqlite":
            contents = of_sqlite.save(Path(place), file, replaces=force)
        else:
            from fairwarning.stores.postgres import backup as of_postgres  # noqa: PLC0415

            contents = asyncio.run(of_postgres.save(place, file, replaces=force))
    _tell(f"{file} has", contents, as_json=as_json)


@click.command(epilog="Example: fairwarning verify monday.backup")
@_file_argument
@json_option
def verify(file: Path, as_json: bool) -> None:
    """Check the backup FILE, or the SQLite file of a store, and say what is in it."""
    with explained_problems():
        contents = _verified(file)
    _tell(f"{file} is whole. It has", contents, as_json=as_json)


@click.command(
    epilog="""\b
Examples:
  fairwarning restore monday.backup --store sqlite:///restored.db
  fairwarning restore monday.backup --store sqlite:///fairwarning.db --force
"""
)
@_file_argument
@store_option("Store to fill, of the same kind as the one that was saved")
@store_file_option
@click.option("--force", is_flag=True, help="Replace what the store has now.")
@json_option
def restore(
    file: Path, store_url: str | None, store_file: Path | None, force: bool, as_json: bool
) -> None:
    """Fill a store with the backup FILE.

    No server may use an SQLite file meanwhile. What happened after the backup is lost: events that
    were announced since are gone, and those that have ended since may be announced again.
    """
    with explained_problems():
        saved = _verified(file)
        kind, place = place_of_store(store_of(store_url, store_file))
        if kind != saved.store:
            raise BadBackup(
                f"{file} is a backup of {saved.store} and --store names {kind}; give a store of "
                "the same kind"
            )
        if kind == "sqlite":
            contents = of_sqlite.restore(file, Path(place), replaces=force)
        else:
            from fairwarning.stores.postgres import backup as of_postgres  # noqa: PLC0415

            contents = asyncio.run(of_postgres.restore(file, place, replaces=force))
    _tell("The store now has", contents, as_json=as_json)


def _verified(file: Path) -> Contents:
    """Check the file, whose first bytes say what it is. Raises BadBackup."""
    if file.exists() and not file.is_file():
        raise BadBackup(f"{file} is no file; name a backup")
    try:
        with open(file, "rb") as opened:
            begin = opened.read(16)
    except OSError as problem:
        raise BadBackup(f"{file} cannot be read: {problem.strerror}") from None
    if begin == MAGIC:
        return of_sqlite.verify(file)
    if not begin.startswith(b"PK"):
        raise BadBackup(f"{file} is no backup of fairwarning; name another file")
    from fairwarning.stores.postgres import backup as of_postgres  # noqa: PLC0415

    return of_postgres.verify(file)


def place_of_store(url: str | None) -> tuple[str, str]:
    """Return the kind of the store, and its file or URL. Raises BadStoreUrl or BadBackup."""
    url = url or default_store_url()
    if url.startswith("sqlite:///"):
        return "sqlite", str(sqlite_file(url.removeprefix("sqlite:///")))
    if is_postgres(url):
        return "postgresql", url
    raise BadBackup(
        "give sqlite:///PATH or postgresql://USER@HOST/DATABASE; only these outlive a server"
    )


def _tell(begin: str, contents: Contents, *, as_json: bool) -> None:
    if as_json:
        echo_json(asdict(contents))
        return
    parts = (
        counted(contents.scopes, "scope"),
        counted(contents.events, "event"),
        counted(contents.records, "record"),
        f"{contents.journal} entries of history",
    )
    click.echo(one_line(f"{begin} {', '.join(parts)}; {contents.store}, schema {contents.schema}."))
    if contents.warning:
        click.echo(one_line(f"warning: {contents.warning}"), err=True)


@contextmanager
def explained_problems() -> Iterator[None]:
    """Raise Problem for what can go wrong with a store or a file in the block."""
    try:
        yield
    except (BadBackup, BadStoreUrl, StoreDown) as problem:
        raise Problem(str(problem)) from None
    except OSError as problem:
        raise Problem(f"{problem.filename or 'a file'}: {problem.strerror or problem}") from None
