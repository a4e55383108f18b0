"""The request log keeps what instances of test fleets asked lately, while somebody looks on.

To look at every request costs the endpoint its fast path, so it is done for a while only.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from fairwarning.core.faults import FaultKind
from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName, ScopeId

KEPT = 200


class Request(Struct, frozen=True, kw_only=True):
    at_ms: Instant
    scope_id: ScopeId
    instance: InstanceName
    kind: str
    """`events`, `approve`, `instance` or `versions`."""
    version: str
    agent: str
    events: tuple[str, ...]
    """The ids that it approves, as the caller wrote them."""
    fault: FaultKind | None
    """The fault that struck the request."""


class Requests:
    def __init__(self) -> None:
        self.count = 0
        """Ever noted; it differs when there is something new."""
        self.switch: Callable[[bool], None] = lambda _: None
        """Told whether requests are to be looked at."""
        self._kept: deque[Request] = deque(maxlen=KEPT)
        self._until_s = 0.0
        self._end: asyncio.TimerHandle | None = None

    @property
    def left_s(self) -> float:
        """How long requests are still noted, by the real clock, by which people look on."""
        return max(0.0, self._until_s - time.monotonic()) if self._end is not None else 0.0

    def watch(self, for_s: float) -> None:
        """Note requests from now on, for this long at most."""
        was_off = self._end is None
        if self._end is not None:
            self._end.cancel()
        self._until_s = time.monotonic() + for_s
        self._end = asyncio.get_running_loop().call_later(for_s, self.stop)
        if was_off:
            self.switch(True)

    def stop(self) -> None:
        """Note no more requests. Those that were noted can still be read."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
            self.switch(False)

    def note(self, request: Request) -> None:
        self.count += 1
        self._kept.appendleft(request)

    def list(self) -> "list[Request]":
        """The requests that were noted, newest first."""
        return [*self._kept]
