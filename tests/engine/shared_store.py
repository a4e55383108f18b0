"""A shared store in memory that can be down, lose signals and step back, as a test asks for."""

import asyncio
import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

from fairwarning.engine.protocols import Listener, Signal, StoreDown
from fairwarning.stores.memory import MemoryStore

_STATE = ("_scopes", "_deadlines", "_pending", "_events", "_addresses", "_entries", "_records")


class SharedStore(MemoryStore):
    """One object for all nodes of a test; signals bring no scope, as those of other nodes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.down: set[str] = set()
        """Methods that raise StoreDown."""
        self.broken: set[str] = set()
        """Methods that raise what no store should."""
        self.calls: Counter[str] = Counter()
        self.signals: list[Signal] | None = None
        """A list: signals are kept here instead of being told."""

    @property
    def is_shared(self) -> bool:
        return True

    def listen(self, listener: Listener) -> None:
        def forward(signal: Signal) -> None:
            bare = Signal(scope_id=signal.scope_id, next_deadline_ms=signal.next_deadline_ms)
            if self.signals is None:
                listener(bare)
            else:
                self.signals.append(bare)

        super().listen(forward)

    def save(self) -> dict[str, Any]:
        return {name: copy.copy(getattr(self, name)) for name in _STATE}

    def restore(self, saved: dict[str, Any]) -> None:
        for name, value in saved.items():
            setattr(self, name, copy.copy(value))

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return found if name.startswith("_") or name not in _METHODS else self._counted(name, found)

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **named: Any) -> Any:
            self.calls[name] += 1
            # As over a network, so that others have a turn meanwhile.
            await asyncio.sleep(0)
            if name in self.down:
                raise StoreDown("switched off by the test")
            if name in self.broken:
                raise RuntimeError("broken by the test")
            return await method(*args, **named)

        return call


_METHODS = frozenset(
    {"create", "transact", "read", "scopes", "scope_ids", "due", "end", "journal", "history",
     "note_seen", "find_event", "locate", "record", "records", "keep", "drop"}
)  # fmt: skip
