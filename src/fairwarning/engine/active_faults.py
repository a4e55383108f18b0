"""This module keeps the faults that are set on this node. A restart clears them."""

import random
import secrets
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from fairwarning.core.faults import Fault, Part
from fairwarning.core.model import InstanceName
from fairwarning.engine.protocols import Clock

FAULTS_MAX = 100  # Each request of a test fleet tries all of them.


class TooManyFaults(Exception):
    def __init__(self) -> None:
        super().__init__(f"{FAULTS_MAX} faults are set already; clear some first")


class NoFaultsHere(Exception):
    def __init__(self) -> None:
        super().__init__(
            "instances ask other processes than this one, and faults need one process that counts "
            "what they strike; start a server without --workers and --role to rehearse"
        )


class Faults:
    """The faults that are set. They are tried in order, and at most one strikes each request."""

    def __init__(self, clock: Clock, seed: int | None = None) -> None:
        self._clock = clock
        self._rng = random.Random(seed)  # noqa: S311  (nothing secret is drawn)
        self._set: dict[str, Fault] = {}
        self._listeners: list[Callable[[Sequence[Fault]], None]] = []
        self.struck: dict[str, int] = {}
        """How many requests each kind of fault has struck since the start."""
        self.are_elsewhere = False
        """Whether other processes answer all requests, so that no fault can be set here."""

    def listen(self, listener: Callable[[Sequence[Fault]], None]) -> None:
        """Call the listener with the list of faults, now and whenever the list may have changed."""
        self._listeners.append(listener)
        listener([*self._set.values()])

    def set(self, fault: Fault) -> Fault:
        if self.are_elsewhere:
            raise NoFaultsHere
        self._sweep()
        if len(self._set) >= FAULTS_MAX:
            raise TooManyFaults
        fault = replace(fault, id=secrets.token_hex(4))
        self._set[fault.id] = fault
        self._tell()
        return fault

    def clear(self, id: str | None = None) -> int:
        """Clear the fault with this id, or all. Returns how many were cleared."""
        gone = [*self._set] if id is None else [id] if id in self._set else []
        for each in gone:
            del self._set[each]
        self._tell()
        return len(gone)

    def list(self) -> "list[Fault]":
        self._sweep()
        return [*self._set.values()]

    def draw(self, name: InstanceName, part: Part) -> Fault | None:
        """Return the fault that strikes this request and count it, or return None."""
        now = self._clock.now()
        for fault in self._set.values():
            chance = self._rng.random() if fault.probability < 1 else 0.0
            if fault.strikes(name, part, now, chance):
                self._set[fault.id] = replace(fault, hits=fault.hits + 1)
                self.struck[fault.kind] = self.struck.get(fault.kind, 0) + 1
                self._sweep()
                return fault
        return None

    def _sweep(self) -> None:
        now = self._clock.now()
        over = [id for id, fault in self._set.items() if fault.is_over(now)]
        for id in over:
            del self._set[id]
        if over:
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener([*self._set.values()])
