"""The store as one node sees it. Every call stops twice for the world, and may fail."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import Listener, Signal, Store
from fairwarning.simulation.calls import Calls

_WRITES = ("create", "transact", "note_seen", "keep", "drop")


class InterceptedStore:
    """Passes each method of `Store` on to the real store, through `Calls.intercept`."""

    def __init__(self, inner: Store, node: str, calls: Calls) -> None:
        self._inner = inner
        self._node = node
        self._calls = calls
        self._listeners: list[Listener] = []
        self.seen_noted: Callable[[Mapping[ScopeId, Instant]], None] = lambda _: None
        """A function that is called with notes of polls after they are stored."""

    @property
    def is_shared(self) -> bool:
        return self._inner.is_shared

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, signal: Signal) -> None:
        """Tells the listeners. The world calls this late, twice, in any order or not at all."""
        for listener in self._listeners:
            listener(signal)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._inner, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            may_be_busy = kwargs.pop("skip_busy", False)
            # The detail says in a trace what was asked for: ids, a kind and key, or a position.
            words = (*args[:2], kwargs.get("after"))
            detail = " ".join(each for each in words if isinstance(each, str))

            async def work() -> Any:
                result = await method(*args, **kwargs)
                if name == "note_seen":
                    self.seen_noted(*args)
                return result

            passing = self._calls.intercept(
                self._node, name, work, detail=detail, may_be_busy=may_be_busy
            )
            return await (_finished(passing) if name in _WRITES else passing)

        return call


async def _finished(write: Awaitable[Any]) -> Any:
    """Runs the write to its end even if the caller is cancelled, as all our stores do."""
    job = asyncio.ensure_future(write)
    # If the caller was cancelled, nobody gets the error.
    job.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(job)
