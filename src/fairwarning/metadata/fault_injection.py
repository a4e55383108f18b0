"""Answers that are wrong on purpose. While a fault is set no poll is remembered by its bytes,
so that each request comes by here; while none is, this costs nothing.
"""

import asyncio
import socket
import struct
from collections.abc import Sequence

from fairwarning.core.api_versions import ApiVersion
from fairwarning.core.faults import Fault, FaultKind, Part, broken_document
from fairwarning.core.model import ScopeId
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.document_views import Views
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.requests import Ask, Kind
from fairwarning.metadata.responses import Answer, error

_PARTS = {Kind.EVENTS: Part.POLL, Kind.APPROVE: Part.APPROVE}
_WORDS = {
    410: "Gone. The service is being updated",
    429: "Too many requests",
    500: "Internal server error",
    503: "Service unavailable. Try again in a moment",
}
EMPTY = Answer(status=200)
_PIECES = 10
"""In how many pieces a slow body comes."""
Snapshot = dict[tuple[ScopeId, str], bytes]


class Faulty:
    def __init__(self, faults: Faults, views: Views, versions: Sequence[ApiVersion]) -> None:
        self._faults = faults
        self._views = views
        self._versions = versions
        self._stale: dict[str, Snapshot] = {}
        """What every test scope showed when a stale fault was set, by the fault's id."""
        self.is_on = False
        faults.listen(self._on_faults)

    def strike(self, member: Member, ask: Ask) -> Fault | None:
        """The fault of this request. Only test fleets have any."""
        if not member.view.is_test:
            return None
        return self._faults.draw(member.name, _PARTS.get(ask.kind, Part.INSTANCE))

    def document(self, fault: Fault, member: Member, version: ApiVersion) -> Answer:
        """For an activated scope."""
        view = member.view
        if fault.kind is FaultKind.STALE:
            body = self._stale.get(fault.id, {}).get((view.scope_id, version.name))
            body = body or b'{"DocumentIncarnation":1,"Events":[]}'
        else:
            body = broken_document(view.document(version), fault.kind, instance=member.name)
        tag = f'"{fault.kind}-{view.tag[1:]}'
        return Answer(status=200, body=body, headers={"ETag": tag})

    def _on_faults(self, faults: Sequence[Fault]) -> None:
        self.is_on = bool(faults)
        stale = {each.id for each in faults if each.kind is FaultKind.STALE}
        self._stale = {id: self._stale.get(id) or self._snapshot() for id in stale}

    def _snapshot(self) -> Snapshot:
        return {
            (view.scope_id, version.name): view.document(version)
            for view in self._views.test_views()
            for version in self._versions
        }


def reset(transport: asyncio.Transport) -> None:
    """Cuts the connection, so that the client sees a reset and not an end."""
    client = transport.get_extra_info("socket")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def send_slowly(
    transport: asyncio.Transport, whole: bytes, body_bytes: int, over_ms: int
) -> bytes:
    """Sends the head of an answer at once, and its body in pieces. The last piece is returned."""
    start = len(whole) - body_bytes
    step = max(1, body_bytes // _PIECES)
    pieces = [whole[:start], *(whole[at : at + step] for at in range(start, len(whole), step))]
    for piece in pieces[:-1]:
        if not transport.is_closing():
            transport.write(piece)
        await asyncio.sleep(over_ms / 1000 / len(pieces))
    return pieces[-1]


def status_answer(fault: Fault) -> Answer:
    text = _WORDS.get(fault.status, "The endpoint was told to fail")
    if fault.status in (429, 503):
        return error(fault.status, text, Retry_After="1")
    return error(fault.status, text)
