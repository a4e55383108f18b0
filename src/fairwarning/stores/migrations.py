"""Loads the migrations and the named queries of a dialect from `sql/`, and says which ones may run.

Migrations run in order, each in a transaction of its own, which also records its number. There is
no way back to an older schema. Instead, a new schema is reached in two kinds of steps, so that
nodes of neighbouring versions can share a database:

- An **expand** migration only adds. Nodes that don't know it go on working.
- A **contract** migration removes what newer nodes no longer use. It names the oldest schema that a
  node must know to survive it. That number becomes the *floor* of the database: a node that knows
  less may not write any more, and each of its write transactions checks this.

Each file begins with its kind: `-- expand`, or `-- contract: nodes must know schema N`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from fairwarning import __version__
from fairwarning.engine.protocols import SchemaTooNew, StoreDown

FLOOR_SINCE = 3
"""The migration that makes the table of the floor. Databases before it have no floor."""
RUNNING_S = 30.0
"""A node that was seen within this time counts as running. Nodes tell of themselves more often."""
Tell = Callable[[str], None]
"""A function that shows a line of progress to whoever waits for the migrations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    sql: str
    name: str = ""
    oldest_node: int | None = None
    """The oldest schema that a node must know after it. None means an expand migration."""

    @property
    def raises_floor(self) -> bool:
        return self.oldest_node is not None and self.version > FLOOR_SINCE

    @property
    def title(self) -> str:
        return f"schema {self.version} ({self.name})" if self.name else f"schema {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a database says about its schema."""

    version: int = 0
    floor: int = 0
    """The oldest schema that a node must know to write."""
    program: str = ""
    """The version of fairwarning that made the newest schema. It is empty if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningNode:
    """A node that has told the database lately that it runs."""

    name: str
    host: str
    pid: int
    program: str
    """Its version of fairwarning."""
    schema: int
    """The newest schema that it knows."""
    seen_s: float
    """How many seconds ago it was last seen."""

    @property
    def title(self) -> str:
        return f"{self.name} (process {self.pid} on {self.host}, fairwarning {self.program})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a call of `migrate` has done."""

    before: int
    after: int
    seconds: Mapping[int, float]
    """How long each migration took that was run, by its version."""


class WouldHarmNodes(StoreDown):
    """A contract migration waits, because nodes that run now could no longer write after it."""

    def __init__(self, migration: Migration, nodes: Sequence[RunningNode]) -> None:
        named = ", ".join(node.title for node in nodes)
        super().__init__(
            f"{migration.title} would harm nodes that don't know schema {migration.oldest_node} "
            f"and were seen in the last {RUNNING_S:.0f} s: {named}; upgrade or stop them, and then "
            "run `fairwarning migrate`"
        )
        self.migration = migration
        self.nodes = tuple(nodes)


def missing_of(migrations: Sequence[Migration], schema: Schema, where: str) -> Sequence[Migration]:
    """Returns the migrations that a database still needs. There are none if its schema is newer
    than all of them and this program may still use it. Raises SchemaTooNew if it may not. The
    message calls the database `where`.
    """
    refuse_outdated(len(migrations), schema, where)
    return migrations[schema.version :]


def refuse_outdated(newest: int, schema: Schema, where: str) -> None:
    """Raises SchemaTooNew if a program that knows schemas up to `newest` may not use the store."""
    if schema.floor <= newest:
        return
    maker = f", made by fairwarning {schema.program}" if schema.program else ""
    target = f" to {schema.program} or newer" if schema.program else ""
    raise SchemaTooNew(
        f"{where} has schema version {schema.version}{maker}, and may only be used by versions "
        f"that know schema {schema.floor}; this is fairwarning {__version__}, which knows up to "
        f"{newest}; upgrade it{target}, or restore the backup from before the upgrade"
    )


def refuse_harm(migration: Migration, running: Sequence[RunningNode]) -> None:
    """Raises WouldHarmNodes if the migration is a contract that a running node does not survive."""
    oldest = migration.oldest_node
    if oldest is not None and (harmed := [node for node in running if node.schema < oldest]):
        raise WouldHarmNodes(migration, harmed)


def may_wait(missing: Sequence[Migration]) -> bool:
    """Returns whether a node can run before these migrations do: yes, if all only remove."""
    return all(migration.oldest_node is not None for migration in missing)


_KIND = re.compile(r"-- (?:expand|contract: nodes must know schema (?P<oldest>\d+))\n")


def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """Returns the files `sql/<dialect>/NNNN_words.sql` in order. Their numbers are 1, 2, 3 …"""
    folder = files("fairwarning.stores").joinpath("sql", dialect)
    found = sorted(
        (path for path in folder.iterdir() if path.name[:4].isdigit()), key=lambda path: path.name
    )
    migrations = tuple(_loaded(path) for path in found)
    assert [each.version for each in migrations] == list(range(1, len(migrations) + 1))
    return migrations


def _loaded(path: Any) -> Migration:
    sql = path.read_text(encoding="utf-8")
    kind = _KIND.match(sql)
    assert kind is not None, f"{path.name} does not begin with its kind"
    oldest = kind["oldest"]
    return Migration(
        version=int(path.name[:4]),
        sql=sql,
        name=path.name[5:].removesuffix(".sql").replace("_", " "),
        oldest_node=None if oldest is None else int(oldest),
    )


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
