"""A variant of the cluster has one kind of database, and the faults that it meets."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.cluster import database_faults as database
from tools.cluster import databases
from tools.cluster import node_faults as node
from tools.cluster.fault import Fault

_NODE_FAULTS: Sequence[type[Fault[Any]]] = (
    node.Kill,
    node.Stop,
    node.Pause,
    node.NodeDiskFull,
    node.NodeClock,
    node.ConnectionCut,
    node.BlackHole,
    node.OneWayToDatabase,
    node.OneWayFromDatabase,
)
_PAIR_FAULTS: Sequence[type[Fault[Any]]] = (
    database.FastRestart,
    database.ImmediateRestart,
    database.FailOver,
    database.SwitchOver,
    database.StandbyAway,
    database.SlowDisk,
    database.SlowStandby,
    database.DatabaseDiskFull,
    database.DatabaseClock,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    name: str
    database: Callable[[Path, Mapping[str, str]], AbstractContextManager[Any]]
    """Runs the database during a block, with its files in a folder and an environment."""
    faults: Sequence[type[Fault[Any]]]
    share: float
    """Which part of the time it gets if several variants run."""


VARIANTS = (
    Variant(
        name="plain",
        database=databases.plain,
        faults=(*_NODE_FAULTS, *_PAIR_FAULTS),
        share=0.6,
    ),
    Variant(
        name="pgbouncer",
        database=databases.bounced,
        faults=(
            node.Kill,
            node.BlackHole,
            database.FastRestart,
            database.ImmediateRestart,
            database.FailOver,
            database.BouncerRestart,
        ),
        share=0.2,
    ),
    Variant(
        name="patroni",
        database=databases.patroni,
        faults=(
            node.Kill,
            node.BlackHole,
            database.PatroniSwitchOver,
            database.PatroniFailOver,
        ),
        share=0.2,
    ),
)


def fault_names() -> list[str]:
    return list(dict.fromkeys(each.name for variant in VARIANTS for each in variant.faults))
