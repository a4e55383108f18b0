"""The one place where concrete classes are chosen."""

import secrets
import uuid
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_data_path

from fairwarning.core.model import EventId, NodeId
from fairwarning.drivers.simulated import SimulatedDriver
from fairwarning.engine.ports import Clock, Drivers, Store
from fairwarning.engine.service import Engine, Rules
from fairwarning.metadata.endpoint import Endpoint
from fairwarning.metadata.limits import EndpointRules
from fairwarning.metadata.server import MetadataServer
from fairwarning.metadata.service import Service
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.sqlite import SqliteStore


class BadStoreUrl(ValueError):
    """The store's URL is none that we know."""


def default_store_url() -> str:
    return f"sqlite:///{user_data_path('fairwarning') / 'fairwarning.db'}"


def make_store(url: str, clock: Clock, *, has_own_time: bool = False) -> Store:
    """`has_own_time`: a virtual clock rules, and not the database's."""
    if url == "memory:":
        return MemoryStore(clock)
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return SqliteStore(Path(url.removeprefix("sqlite:///")).expanduser(), clock)
    if url.startswith(("postgresql://", "postgres://")):
        return PostgresStore(url, clock if has_own_time else None)
    raise BadStoreUrl(
        f"{url!r} is no store; use sqlite:///PATH, postgresql://USER@HOST/DATABASE or memory:"
    )


def make_drivers(clock: Clock) -> Drivers:
    return {"simulated": SimulatedDriver(clock)}


def new_event_id() -> EventId:
    return EventId(str(uuid.uuid4()).upper())


def new_node_id() -> NodeId:
    return NodeId(f"node-{secrets.token_hex(4)}")


def make_engine(store: Store, clock: Clock, *, rules: Rules | None = None) -> Engine:
    return Engine(
        store=store,
        clock=clock,
        drivers=make_drivers(clock),
        node=new_node_id(),
        ids=new_event_id,
        rules=rules,
    )


async def make_metadata_server(
    engine: Engine,
    store: Store,
    clock: Clock,
    addresses: Sequence[tuple[str, int]],
    rules: EndpointRules,
) -> MetadataServer:
    """Bound to its addresses, but not yet accepting. Raises OSError if one is taken."""
    views = await engine.show()
    endpoint = Endpoint(engine, views, store, clock, rules)
    return MetadataServer(Service(views, endpoint, rules), addresses)
