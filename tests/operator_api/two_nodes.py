"""Two nodes on one store, without their servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from fairwarning.boot import make_control, make_engine
from fairwarning.core.model import Scope
from fairwarning.core.resources import Place, ScaleSet, expand
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Store
from fairwarning.operator_api.context import AzureListener, Control
from tests.notifications.rig import SharedStore
from tests.operator_api.rig import ME

SET = ScaleSet(name="workers", capacity=101, place=Place(test=True))
"""In two placement groups, and so in two scopes."""


class Way:
    """One node's own way to the store, which a test can block."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    one: Control
    two: Control
    first: Store
    """The way of the first node."""
    store: SharedStore
    clock: VirtualClock
    """Of the store."""
    scopes: list[Scope]


def node(store: Store) -> Control:
    clock = VirtualClock()
    engine = make_engine(store, clock)
    views = Views(store, engine._submit_own)
    return make_control(engine, store, views, clock, AzureListener())


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    clock = VirtualClock()
    store = SharedStore(clock)
    scopes = list(expand(SET))
    await store.create(scopes, by=ME)
    first, second = cast(Store, Way(store)), cast(Store, Way(store))
    yield Pair(
        one=node(first), two=node(second), first=first, store=store, clock=clock, scopes=scopes
    )
