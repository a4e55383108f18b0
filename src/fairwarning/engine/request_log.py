"""The request log keeps the latest requests of instances of test fleets while somebody watches.

Watching makes the endpoint slower, so it is on for a limited time only.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from fairwarning.core.faults import FaultKind
from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName, ScopeId

KEPT = 200  # Enough to follow a handler, and little memory.


class Request(Struct, frozen=True, kw_only=True):
    at_ms: Instant
    scope_id: ScopeId
    instance: InstanceName
    kind: str
    """What was asked for: `events`, `approve`, `instance` or `versions`."""
    version: str
    agent: str
    events: tuple[str, ...]
    """The event ids that the request approves, as the caller wrote them."""
    fault: FaultKind | None
    """The fault that struck the request, or None."""
    hint: str = ""
    """Why the request was refused and what an operator can do, or an empty text."""


class Requests:
    def __init__(self) -> None:
        self.count = 0
        """The number of all requests noted so far. It changes when there is a new request."""
        self.switch: Callable[[bool], None] = lambda _: None
        """A function that is called with True when watching begins and with False when it ends."""
        self._kept: deque[Request] = deque(maxlen=KEPT)
        self._until_s = 0.0
        self._end: asyncio.TimerHandle | None = None

    @property
    def left_s(self) -> float:
        """For how many more seconds requests are noted, in real time."""
        return max(0.0, self._until_s - time.monotonic()) if self._end is not None else 0.0

    def watch(self, for_s: float) -> None:
        """Note requests from now on, for `for_s` seconds at most."""
        was_off = self._end is None
        if self._end is not None:
            self._end.cancel()
        self._until_s = time.monotonic() + for_s
        self._end = asyncio.get_running_loop().call_later(for_s, self.stop)
        if was_off:
            self.switch(True)

    def stop(self) -> None:
        """Stop noting requests. Those that were noted can still be read."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
            self.switch(False)

    def note(self, request: Request) -> None:
        self.count += 1
        self._kept.appendleft(request)

    def list(self) -> "list[Request]":
        """Return the requests that were noted, newest first."""
        return [*self._kept]
