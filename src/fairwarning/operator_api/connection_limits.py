"""Limits connections and streams of the control plane, and closes idle ones to make room.

How it works. A new connection is never refused for those that are there, or whoever opens
many would lock out everybody. Instead one that has not asked for anything yet is closed, of the
client that has most of those, or else one that was answered and is only kept open. It must have
been silent for a moment: in a burst, requests are on their way. If all are at work the new one is a
spare: it is answered if it asks how we are (`/healthz`, `/readyz`, `/metrics`), and told to come
again if it asks for more.
"""

import ipaddress
import time
from collections import Counter
from collections.abc import AsyncIterable, Callable
from functools import lru_cache

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.problems import Problem

ALL_MAX = 2_000
CLIENT_MAX = 500
"""The limit for one client address. A proxy in front counts as one."""
WAITING_MAX = 500
"""The limit of connections that have not sent a request yet."""
CLIENT_WAITING_MAX = 100
ARRIVAL_S = 1.0
"""A connection that has been silent for less may have a request on its way, and is left alone."""
SPARE_MAX = 50
FILES_KEPT_SHARE = 3
"""All connections together take at most one in this many file descriptors."""
_ALL_MIN = 16


class Entry:
    """One connection, as it is counted."""

    def __init__(self, client: str, since_s: float) -> None:
        self.client = client
        self.since_s = since_s
        """When it came, or was last answered; long ago if it has sent a part of a head."""
        self.is_spare = False
        self.has_left = False
        self.close: Callable[[], object] = lambda: None
        """Closes it at once."""


class Connections:
    def __init__(self, files_max: int, now: Callable[[], float] = time.monotonic) -> None:
        """`files_max` is how many file descriptors this process may have."""
        self._now = now
        self._max = max(_ALL_MIN, min(ALL_MAX, files_max // FILES_KEPT_SHARE))
        self._client_max = max(_ALL_MIN // 2, self._max * CLIENT_MAX // ALL_MAX)
        self._counts: Counter[str] = Counter()
        self._waiting: Table = {}
        """Connections that have not sent a request yet."""
        self._waiting_count = 0
        self._resting: Table = {}
        """Connections that were answered and are kept open."""
        self._spare: dict[Entry, None] = {}

    def __len__(self) -> int:
        return self._counts.total() + len(self._spare)

    def enter(self, address: str) -> Entry:
        """Count a new connection; close another one if there is no room."""
        client = client_of(address)
        entry = Entry(client, self._now())
        if len(self._waiting.get(client, ())) >= min(CLIENT_WAITING_MAX, self._client_max):
            self._end(self._patient(self._waiting, client))
        elif self._waiting_count >= WAITING_MAX:
            self._end(self._patient(self._waiting, _most(self._waiting)))
        is_full = self._counts.total() >= self._max
        if is_full or self._counts[client] >= self._client_max:
            tables = (self._waiting, self._resting)
            crowds = [(each, _most(each) if is_full else client) for each in tables]
            found = [self._patient(*crowd) for crowd in crowds]
            ended = next((each for each in found if each is not None), None)
            if ended is None:
                return self._enter_as_spare(entry)
            self._end(ended)
        self._counts[client] += 1
        self._waiting.setdefault(client, {})[entry] = None
        self._waiting_count += 1
        return entry

    def began(self, entry: Entry) -> None:
        """Note that it has sent a part of a head."""
        entry.since_s = float("-inf")

    def asked(self, entry: Entry) -> None:
        """Note that a request's head is complete."""
        if _removed(self._waiting, entry):
            self._waiting_count -= 1
        _removed(self._resting, entry)

    def rests(self, entry: Entry) -> None:
        """Note that it was answered and is idle."""
        if not entry.is_spare and not entry.has_left:
            entry.since_s = self._now()
            self._resting.setdefault(entry.client, {})[entry] = None

    def leave(self, entry: Entry) -> None:
        """Stop counting it. A second call has no effect."""
        if entry.is_spare:
            self._spare.pop(entry, None)
            return
        self.asked(entry)
        if not entry.has_left:
            entry.has_left = True
            self._counts[entry.client] -= 1
            if not self._counts[entry.client]:
                del self._counts[entry.client]

    def _enter_as_spare(self, entry: Entry) -> Entry:
        entry.is_spare = True
        if len(self._spare) >= min(SPARE_MAX, self._max):
            self._end(next(iter(self._spare)))
        self._spare[entry] = None
        return entry

    def _patient(self, table: "Table", client: str) -> Entry | None:
        """Return the oldest of this client, unless its request may be on its way."""
        oldest = next(iter(table.get(client, ())), None)
        if oldest is None or self._now() - oldest.since_s < ARRIVAL_S:
            return None
        return oldest

    def _end(self, entry: Entry | None) -> None:
        if entry is not None:
            self.leave(entry)
            entry.close()


Table = dict[str, dict[Entry, None]]
"""Connections by client, the oldest first."""


def _most(table: Table) -> str:
    return max(table, key=lambda client: len(table[client]), default="")


def _removed(table: Table, entry: Entry) -> bool:
    found = table.get(entry.client)
    if found is None or entry not in found:
        return False
    del found[entry]
    if not found:
        del table[entry.client]
    return True


@lru_cache(4_096)
def client_of(address: str) -> str:
    """Return the client of an address: an IPv6 network of 64 bits counts as one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


STREAMS_MAX = 500
CALLER_STREAMS_MAX = 100
"""The limit for one token; all callers without one count as one."""
MEDIA_TYPE = "text/event-stream"


class OpenStreams:
    """Counts the open server-sent event streams of the API and the portal together."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def begin(self, caller: Caller, lines: AsyncIterable[bytes]) -> StreamingResponse:
        """Return the response. Raises Problem if there are too many."""
        id = caller.token_id
        if self._open[id] >= CALLER_STREAMS_MAX or self._open.total() >= STREAMS_MAX:
            raise Problem(
                503,
                "too-many-streams",
                f"at most {STREAMS_MAX} streams are open, {CALLER_STREAMS_MAX} of one token; close "
                "some, or come again later",
                headers={"Retry-After": "5"},
            )
        self._open[id] += 1
        return _Stream(lines, lambda: self._end(id))

    def _end(self, id: str) -> None:
        self._open[id] -= 1
        if not self._open[id]:
            del self._open[id]


class _Stream(StreamingResponse):
    """A stream that counts as open until it ends, also if its reader leaves at once."""

    def __init__(self, lines: AsyncIterable[bytes], on_end: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(lines, media_type=MEDIA_TYPE, headers=headers)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()
