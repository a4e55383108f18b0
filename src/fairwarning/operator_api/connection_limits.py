"""Limits connections and streams of the control plane, and closes idle ones to make room.

How it works. At the limit a new connection is not refused, because then a client with many
connections could lock out all others. Instead an old one is closed: first a connection that has
sent no request yet, of the client that has the most of these; otherwise an idle connection whose
requests are answered. It must have been silent for a moment, because its request may be on the
way. If all connections are busy, the new one is a spare: requests for `/healthz`, `/readyz` and
`/metrics` are answered, and all others are told to try again later.
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

ALL_MAX = 2_000  # Portals and tools of a large team need some hundred.
CLIENT_MAX = 500
"""The limit of connections for one client address. A proxy counts as one client."""
WAITING_MAX = 500
"""The limit of connections that have not sent a request yet, for all clients together."""
CLIENT_WAITING_MAX = 100  # A browser opens six at once; this leaves room for a proxy.
ARRIVAL_S = 1.0
"""A silent connection is not closed before this time, because a request may be on the way."""
SPARE_MAX = 50  # Enough for monitoring to look at the health while all others wait.
FILES_KEPT_SHARE = 3
"""All connections together use at most 1/`FILES_KEPT_SHARE` of the file descriptors."""
_ALL_MIN = 16  # With fewer, not even one browser and one tool could work.


class Entry:
    """One counted connection."""

    def __init__(self, client: str, since_s: float) -> None:
        self.client = client
        self.since_s = since_s
        """When it connected or was last answered; -infinity once it has sent a part of a head."""
        self.is_spare = False
        self.has_left = False
        self.close: Callable[[], object] = lambda: None
        """Closes the connection at once."""


class Connections:
    def __init__(self, files_max: int, now: Callable[[], float] = time.monotonic) -> None:
        """`files_max` is how many file descriptors this process may open."""
        self._now = now
        self._max = max(_ALL_MIN, min(ALL_MAX, files_max // FILES_KEPT_SHARE))
        self._client_max = max(_ALL_MIN // 2, self._max * CLIENT_MAX // ALL_MAX)
        self._counts: Counter[str] = Counter()
        self._waiting: Table = {}
        """Connections that have not sent a request yet."""
        self._waiting_count = 0
        self._resting: Table = {}
        """Idle connections, whose requests were all answered."""
        self._spare: dict[Entry, None] = {}

    def __len__(self) -> int:
        return self._counts.total() + len(self._spare)

    def enter(self, address: str) -> Entry:
        """Count a new connection and return its entry. At a limit, close another connection."""
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
        """Note that the connection has sent a part of a request's head."""
        entry.since_s = float("-inf")

    def asked(self, entry: Entry) -> None:
        """Note that the connection has sent a complete head of a request."""
        if _removed(self._waiting, entry):
            self._waiting_count -= 1
        _removed(self._resting, entry)

    def rests(self, entry: Entry) -> None:
        """Note that the connection's requests were answered and it is idle."""
        if not entry.is_spare and not entry.has_left:
            entry.since_s = self._now()
            self._resting.setdefault(entry.client, {})[entry] = None

    def leave(self, entry: Entry) -> None:
        """Stop counting the connection. A second call has no effect."""
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
        """Return the client's oldest connection. It is None if a request may be on the way."""
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
    """Return the client of an address. All addresses of an IPv6 /64 network are one client."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


STREAMS_MAX = 500  # Each open page holds one.
CALLER_STREAMS_MAX = 100
"""The limit of open streams for one token. All callers without a token count as one."""
MEDIA_TYPE = "text/event-stream"


class OpenStreams:
    """Counts the open server-sent event streams of the API and the portal together."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def begin(self, caller: Caller, lines: AsyncIterable[bytes]) -> StreamingResponse:
        """Return the response that streams `lines`. Raises Problem if too many streams are open."""
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
    """A streaming response that calls `on_end` when it ends, also if the client leaves early."""

    def __init__(self, lines: AsyncIterable[bytes], on_end: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(lines, media_type=MEDIA_TYPE, headers=headers)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()
