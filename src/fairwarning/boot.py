"""This module makes the objects of a server. Only here are the concrete classes chosen."""

import contextlib
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from platformdirs import user_data_path
from starlette.routing import BaseRoute

from fairwarning.common.store_urls import is_postgres
from fairwarning.core.instants import later
from fairwarning.core.model import EventId, NodeId, operator_actor
from fairwarning.drivers import plugins
from fairwarning.drivers.hooks import HookRunner
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.engine_presence import EngineWatch
from fairwarning.engine.node_roles import ALL_ROLES, NodeRole, NodeRoles
from fairwarning.engine.protocols import Clock, Ids, Store
from fairwarning.engine.request_log import Requests
from fairwarning.engine.rollouts import Rollouts
from fairwarning.engine.service import Engine, Rules
from fairwarning.metadata.endpoint_state import EndpointState
from fairwarning.metadata.handlers import Handlers
from fairwarning.metadata.server import MetadataServer, open_socket
from fairwarning.metadata.settings import EndpointRules
from fairwarning.notifications.dispatcher import Notifications
from fairwarning.notifications.sender import NetworkSender
from fairwarning.operator_api.app import ROUTES, App
from fairwarning.operator_api.auth import Role, Token, Tokens
from fairwarning.operator_api.context import AzureListener, Control
from fairwarning.operator_api.dispatch import Dispatch
from fairwarning.operator_api.offload import Offload
from fairwarning.operator_api.record_leases import Leases
from fairwarning.operator_api.subprocess_pool import SubprocessPool
from fairwarning.portal.app import Portal
from fairwarning.portal.routes import PAGES
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.sqlite import SqliteStore


class BadStoreUrl(ValueError):
    """The URL of the store is invalid, or names a kind of store that does not exist."""


def default_store_url() -> str:
    return f"sqlite:///{user_data_path('fairwarning') / 'fairwarning.db'}"


def default_tls_folder() -> Path:
    return user_data_path("fairwarning") / "tls"


def make_store(
    url: str,
    clock: Clock,
    *,
    has_own_time: bool = False,
    direct_url: str = "",
    node: NodeId | None = None,
    silent_s: float | None = None,
) -> Store:
    """Return the store for this URL. Raises BadStoreUrl if the URL is invalid. With `has_own_time`,
    PostgreSQL takes the time from `clock` and not from the database. It receives the signals of
    other nodes through `direct_url`, if that is given. `node` is the name under which the nodes of
    a shared store see this one. A connection that is silent for `silent_s` is given up.
    """
    if url == "memory:":
        return MemoryStore(clock)
    if url.startswith("sqlite:///"):
        return SqliteStore(sqlite_file(url.removeprefix("sqlite:///")), clock)
    if is_postgres(url):
        # The PostgreSQL driver loads slowly (0.17 s), and most processes do not need it.
        from fairwarning.stores.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(
            url,
            clock if has_own_time else None,
            direct_dsn=direct_url,
            node=node or "",
            silent_s=silent_s,
        )
    raise BadStoreUrl(
        f"{url.partition('://')[0]!r} is no kind of store; use sqlite:///PATH, "
        "postgresql://USER@HOST/DATABASE or memory:"
    )


def sqlite_file(text: str) -> Path:
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # There is no such user.
        path = Path()
    if not path.name or "\0" in text:
        raise BadStoreUrl(f"{text!r} is no file; use sqlite:///PATH, such as sqlite:///srv/fw.db")
    return path


def new_event_id() -> EventId:
    return EventId(str(uuid.uuid4()).upper())


def new_node_id() -> NodeId:
    return NodeId(f"node-{secrets.token_hex(4)}")


def make_engine(
    store: Store,
    clock: Clock,
    *,
    rules: Rules | None = None,
    ids: Ids | None = None,
    node: NodeId | None = None,
    takes_work: bool = True,
) -> Engine:
    return Engine(
        store=store,
        clock=clock,
        drivers=plugins.make_all(clock),
        run_hook=HookRunner(clock),
        node=node or new_node_id(),
        ids=ids or new_event_id,
        rules=rules,
        takes_work=takes_work,
    )


async def make_metadata_server(
    engine: Engine,
    store: Store,
    clock: Clock,
    addresses: Sequence[tuple[str, int]],
    rules: EndpointRules,
    faults: Faults | None = None,
) -> MetadataServer:
    """Return a server that is bound, but does not accept requests yet. Raises OSError."""
    views = await engine.show()
    handlers = Handlers(engine, views, store, clock, rules)
    state = EndpointState(views, handlers, rules, faults or Faults(clock), engine.documents_age_s)
    with contextlib.ExitStack() as on_error:
        opened = [on_error.enter_context(open_socket(*each)) for each in addresses]
        on_error.pop_all()
    return MetadataServer(state, opened)


def make_control(
    engine: Engine,
    store: Store,
    views: Views,
    clock: Clock,
    azure: AzureListener,
    faults: Faults | None = None,
    metadata_urls: Sequence[str] = (),
    requests: Requests | None = None,
    public_url: str = "",
    roles: NodeRoles = ALL_ROLES,
) -> Control:
    subprocesses = SubprocessPool()
    offload = Offload(subprocesses)
    return Control(
        engine=engine,
        store=store,
        views=views,
        clock=clock,
        tokens=Tokens(store, clock),
        rollouts=Rollouts(engine, store, clock, offload),
        notifications=Notifications(store=store, clock=clock, sender=NetworkSender(clock)),
        faults=faults or Faults(clock),
        requests=requests or Requests(),
        azure=azure,
        drivers=plugins.catalogue(),
        leases=Leases(store),
        offload=offload,
        subprocesses=subprocesses,
        metadata_urls=metadata_urls,
        roles=roles,
        engine_watch=None if NodeRole.ENGINE in roles else EngineWatch(store),
        public_url=public_url,
    )


def make_control_app(
    control: Control,
    *,
    needs_token: bool,
    count_polls: Callable[[], Mapping[str, int]],
    store_s_max: float | None = None,
) -> App:
    def pages(dispatch: Dispatch) -> Sequence[BaseRoute]:
        return Portal(control, dispatch, ROUTES, PAGES, needs_token=needs_token).routes()

    app = App(
        control,
        needs_token=needs_token,
        count_polls=count_polls,
        pages=pages,
        store_s_max=store_s_max,
    )
    control.engine.observe(
        lambda receipt, _by, _why, took_s: app.metrics.note_commit(receipt, took_s)
    )
    return app


async def make_token_in(
    store_url: str, name: str, role: Role, *, for_ms: int | None
) -> tuple[Token, str]:
    """Create a token directly in the store, and return it with its secret. A server that is not on
    loopback needs this for its first token, because its API accepts no request without a token.
    """
    clock = SystemClock()
    store = make_store(store_url, clock)
    await store.open()
    try:
        expires = None if for_ms is None else later(clock.now(), for_ms)
        by = operator_actor("store-owner")
        return await Tokens(store, clock).create(name, role, expires, by=by, why="")
    finally:
        await store.close()
