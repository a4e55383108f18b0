"""This module has the options that name a store, and finds out where its URL comes from.

A URL on the command line can be read by every user of the machine in the list of processes. So it
may also come from a file or from the environment, and the command warns of a password on the
command line.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from fairwarning.common.store_urls import has_password, is_postgres
from fairwarning.common.text_files import read_text

STORE_VARIABLE = "FAIRWARNING_STORE"
DIRECT_VARIABLE = "FAIRWARNING_STORE_DIRECT"
SHOWN_WARNING = (
    "warning: the password in {option} can be read by every user of this machine in the list of "
    "processes; use --store-file, FAIRWARNING_STORE, PGPASSFILE or PGPASSWORD"
)

store_file_option = click.option(
    "--store-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with the URL of the store as its first line, so that a password in it is not in "
    "the list of processes.",
)
_store_option = click.option(
    "--store",
    "store_url",
    envvar=STORE_VARIABLE,
    metavar="URL",
    help="URL of the store that keeps the fleet and its events: sqlite:///PATH, "
    "postgresql://… or memory: (default: FAIRWARNING_STORE, or a SQLite file in your data "
    "folder).",
)
_direct_option = click.option(
    "--store-direct",
    "direct_url",
    envvar=DIRECT_VARIABLE,
    metavar="URL",
    help="URL of the same PostgreSQL database without a pooler, if --store leads through one such "
    "as PgBouncer. The server learns of other nodes' changes there (default: "
    "FAIRWARNING_STORE_DIRECT, or the URL of the store).",
)


class StoreUrls(NamedTuple):
    url: str | None
    """The URL of the store, or None if none was given."""
    direct_url: str
    """The URL of the same PostgreSQL without a pooler. It is empty if there is none."""


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command the options of a server's store. The command gets a StoreUrls as `store`."""

    @functools.wraps(command)
    def with_store(
        *, store_url: str | None, store_file: Path | None, direct_url: str | None, **others: Any
    ) -> None:
        url = store_of(store_url, store_file)
        _warn_of_password("direct_url", direct_url, "--store-direct")
        if direct_url and not is_postgres(url or ""):
            raise click.UsageError("--store-direct is for a store in PostgreSQL; leave it out")
        command(store=StoreUrls(url, direct_url or ""), **others)

    return _store_option(store_file_option(_direct_option(with_store)))


def store_of(url: str | None, file: Path | None) -> str | None:
    """Return the URL that an option, a file or the environment gives, or None if none does.

    The options must be named `store_url` and `store_file`. Raises `click.UsageError` if both are
    given, and `click.BadParameter` if the file has no URL.
    """
    _warn_of_password("store_url", url, "--store")
    if file is None:
        return url
    source = click.get_current_context().get_parameter_source("store_url")
    if url is not None and source is not ParameterSource.ENVIRONMENT:
        raise click.UsageError("--store and --store-file exclude each other; give one")
    try:
        first, *_ = [*read_text(file).splitlines(), ""]
    except OSError as problem:
        raise click.BadParameter(
            f"{file} cannot be read: {problem.strerror}; name another file"
        ) from None
    if not first.strip():
        raise click.BadParameter(f"the first line of {file} is empty; write the store's URL there")
    return first.strip()


def _warn_of_password(parameter: str, url: str | None, option: str) -> None:
    """Warn if the URL was given on the command line and has a password."""
    source = click.get_current_context().get_parameter_source(parameter)
    if url is not None and source is ParameterSource.COMMANDLINE and has_password(url):
        click.echo(SHOWN_WARNING.format(option=option), err=True)
