"""Fault injection answers requests of test fleets wrongly, on purpose.

While any fault is set, no poll is remembered by its bytes, so every request is checked here. While
no fault is set, this costs nothing.
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairwarning.core.api_versions import PREVIEW, VERSIONS, ApiVersion
from fairwarning.core.faults import DOCUMENT_KINDS, Fault, FaultKind, Part, broken_document
from fairwarning.core.model import ScopeId
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import StoreDown
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.handlers import Handlers
from fairwarning.metadata.polls import is_behind
from fairwarning.metadata.requests import Kind, Request
from fairwarning.metadata.responses import OUT_OF_SERVICE, Response, VaryingHeaders, error, to_bytes

if TYPE_CHECKING:
    from fairwarning.metadata.connection import Connection

_PARTS = {Kind.EVENTS: Part.POLL, Kind.APPROVE: Part.APPROVE}
_WORDS = {
    410: "Gone. The service is being updated",
    429: "Too many requests",
    500: "Internal server error",
    503: "Service unavailable. Try again in a moment",
}
_EMPTY = Response(status=200)
_PIECES = 10
"""The number of pieces in which a slow body is sent."""
Snapshot = dict[tuple[ScopeId, str], bytes]
"""The document of each test scope in each api-version."""


class FaultInjector:
    """Finds the fault that strikes a request, if any, and answers the request wrongly."""

    def __init__(
        self, faults: Faults, views: Views, handlers: Handlers, varying: VaryingHeaders
    ) -> None:
        self._faults = faults
        self._views = views
        self._handlers = handlers
        self._varying = varying
        self._stale: dict[str, Snapshot] = {}
        """The documents of all test scopes when a STALE fault was set, by the fault's id."""
        self.is_on = False
        """Whether any fault is set."""
        faults.listen(self._on_faults)

    def draw(self, member: Member, request: Request) -> Fault | None:
        """Return the fault that strikes this request, if any. Only test fleets have faults."""
        if not member.view.is_test:
            return None
        return self._faults.draw(member.name, _PARTS.get(request.kind, Part.INSTANCE))

    def inject(
        self,
        fault: Fault,
        connection: "Connection",
        request: Request,
        member: Member,
        body: bytes,
        closes: bool,
    ) -> None:
        """Answer the request wrongly, at once or in a task of the connection."""
        match fault.kind:
            case FaultKind.STATUS:
                connection.send(_status_response(fault), closes=closes)
            case FaultKind.EMPTY:
                connection.send(_EMPTY, closes=closes)
            case FaultKind.RESET:
                if connection.transport is not None:
                    _reset(connection.transport)
            case _:
                work = self._answer(fault, connection, request, member, body, closes)
                connection.begin(work, ends_early=request.kind is Kind.EVENTS)

    async def _answer(
        self,
        fault: Fault,
        connection: "Connection",
        request: Request,
        member: Member,
        body: bytes,
        closes: bool,
    ) -> None:
        """Answer with a fault that takes time or needs the real response."""
        try:
            if fault.kind is FaultKind.SLOW:
                # This is real time, not the server's clock, because the client waits in real time.
                await asyncio.sleep(fault.delay_ms / 1000)
            response = await self._spoilt_response(fault, request, member, body)
            if fault.kind is FaultKind.SLOW_BODY:
                await self._send_slowly(response, connection, fault.delay_ms, closes)
                return
        except StoreDown:
            response = OUT_OF_SERVICE
        except Exception:
            connection.fail()
            return
        connection.finish(response, closes)

    async def _spoilt_response(
        self, fault: Fault, request: Request, member: Member, body: bytes
    ) -> Response:
        """Return the ordinary response, made wrong by the fault. Raises StoreDown."""
        if request.kind is not Kind.EVENTS:
            return await self._handlers.answer(request, member, body)
        await self._handlers.activate(member)
        assert request.version is not None
        if fault.kind in DOCUMENT_KINDS:
            return self._spoilt_document(fault, member, request.version)
        view = member.view
        if is_behind(request, view):
            await self._handlers.catch_up(request.tag, view)
        return Response(status=200, body=view.document(request.version), headers={"ETag": view.tag})

    def _spoilt_document(self, fault: Fault, member: Member, version: ApiVersion) -> Response:
        """Return a wrong document of an activated scope. No real document has its tag."""
        view = member.view
        if fault.kind is FaultKind.STALE:
            body = self._stale.get(fault.id, {}).get((view.scope_id, version.name))
            body = body or b'{"DocumentIncarnation":1,"Events":[]}'
        else:
            body = broken_document(
                view.document(version), fault.kind, instance=member.name, version=version
            )
        tag = f'"{fault.kind}-{view.tag[1:]}'
        return Response(status=200, body=body, headers={"ETag": tag})

    async def _send_slowly(
        self, response: Response, connection: "Connection", over_ms: int, closes: bool
    ) -> None:
        """Send the head at once, and the body in pieces during `over_ms`."""
        whole = to_bytes(response, self._varying, closes=closes)
        start = len(whole) - len(response.body)
        step = max(1, len(response.body) // _PIECES)
        pieces = [whole[:start], *(whole[at : at + step] for at in range(start, len(whole), step))]
        for piece in pieces[:-1]:
            transport = connection.transport
            if transport is None:
                return
            if not transport.is_closing():
                transport.write(piece)
            await asyncio.sleep(over_ms / 1000 / len(pieces))
        connection.finish_bytes(pieces[-1], closes)

    def _on_faults(self, faults: Sequence[Fault]) -> None:
        self.is_on = bool(faults)
        stale = {each.id for each in faults if each.kind is FaultKind.STALE}
        self._stale = {id: self._stale.get(id) or self._snapshot() for id in stale}

    def _snapshot(self) -> Snapshot:
        return {
            (view.scope_id, version.name): view.document(version)
            for view in self._views.test_views()
            for version in (*VERSIONS, PREVIEW)
        }


def _status_response(fault: Fault) -> Response:
    text = _WORDS.get(fault.status, "The endpoint was told to fail")
    if fault.status in (429, 503):
        return error(fault.status, text, Retry_After="1")
    return error(fault.status, text)


def _reset(transport: asyncio.Transport) -> None:
    """Cut the connection so that the client sees a reset, not a normal end."""
    client = transport.get_extra_info("socket")
    # With a linger time of 0, the kernel sends RST instead of FIN.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
