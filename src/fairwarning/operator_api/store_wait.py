"""A node that starts while its store is away waits for it, and says so in its log and /readyz."""

import asyncio
import logging
import resource
import socket

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairwarning.engine.protocols import Store, StoreDown, StoreUnusable
from fairwarning.operator_api.connection_limits import Connections
from fairwarning.operator_api.dispatch import problem_response
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.server import ControlServer, Tls

AGAIN_S = 0.5  # Short enough to start soon after an outage.
TOLD_EVERY_S = 60.0
"""How often the log repeats what the node waits for. More lines would hide others."""

_log = logging.getLogger(__name__)


async def open_store(store: Store, listener: socket.socket, tls: Tls | None) -> None:
    """Open the store. While a shared one is away, wait for it, and serve /healthz and /readyz on
    the listener meanwhile. Raises StoreDown if waiting does not help.
    """
    try:
        await store.open()
    except StoreDown as outage:
        if isinstance(outage, StoreUnusable) or not store.is_shared:
            raise
        reason = str(outage)
    else:
        return
    # A copy, because the server closes its socket at its end.
    server = ControlServer(_WaitingApp(), listener.dup(), tls)
    await server.start()
    try:
        await _wait(store, reason)
    finally:
        await server.stop()


async def _wait(store: Store, reason: str) -> None:
    clock_s = asyncio.get_running_loop().time
    began_s = clock_s()
    told_s, told = float("-inf"), ""
    while True:
        if reason != told or clock_s() - told_s >= TOLD_EVERY_S:
            told_s, told = clock_s(), reason
            _log.warning("waiting for the store before the start: %s", reason)
        await asyncio.sleep(AGAIN_S)
        try:
            await store.open()
        except StoreUnusable:
            raise
        except StoreDown as outage:
            reason = str(outage)
        else:
            _log.warning(
                "the store is there after %.0f s, so the start goes on", clock_s() - began_s
            )
            return


class _WaitingApp:
    """What the control plane answers before the node has its store."""

    def __init__(self) -> None:
        self.connections = Connections(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self.asgi = Starlette(
            routes=[Route("/healthz", _healthz, methods=["GET"])],
            exception_handlers={HTTPException: _not_ready},
        )

    def stop(self) -> None:
        """Do nothing. It has no streams to end."""


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _not_ready(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(
        Problem(
            503,
            "waiting-for-store",
            "the server has just started and waits for its store; its log says why, try again",
            headers={"Retry-After": "1"},
        )
    )
