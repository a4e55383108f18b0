"""Loads the migrations and the named queries of a dialect from `sql/`.

There is no way back to an older schema. Migrations run in order, each in a transaction of its own,
which also records its number. `missing_of` returns those that a database still needs, and each
store runs them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from fairwarning.engine.protocols import StoreDown


class SchemaTooNew(StoreDown):
    """A newer version of fairwarning has migrated this database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    sql: str


def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """Returns the files `sql/<dialect>/NNNN_words.sql` in order. Their numbers are 1, 2, 3 …"""
    folder = files("fairwarning.stores").joinpath("sql", dialect)
    found = sorted(
        (path for path in folder.iterdir() if path.name[:4].isdigit()), key=lambda path: path.name
    )
    migrations = tuple(
        Migration(version=int(path.name[:4]), sql=path.read_text(encoding="utf-8"))
        for path in found
    )
    assert [each.version for each in migrations] == list(range(1, len(migrations) + 1))
    return migrations


def missing_of(migrations: Sequence[Migration], version: int, where: str) -> Sequence[Migration]:
    """Returns the migrations that a database of this schema version still needs. Raises
    SchemaTooNew, whose message names the database `where`, if it is newer than all.
    """
    newest = len(migrations)
    if version > newest:
        raise SchemaTooNew(
            f"{where} has schema version {version} and this version of fairwarning knows up to "
            f"{newest}; upgrade fairwarning, or restore the backup from before the upgrade"
        )
    return migrations[version:]


_HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


def load_queries(dialect: str) -> Mapping[str, str]:
    """Returns the statements of `sql/<dialect>/queries.sql` by their names."""
    path = files("fairwarning.stores").joinpath("sql", dialect, "queries.sql")
    _, *parts = _HEADER.split(path.read_text(encoding="utf-8"))
    names, bodies = parts[::2], parts[1::2]
    assert len(set(names)) == len(names), f"a statement of {dialect} is named twice"
    return {
        name: _COMMENT.sub("", body).strip().removesuffix(";")
        for name, body in zip(names, bodies, strict=True)
    }
