"""Delivers signals from the store to the nodes: late, twice, in any order, or not at all.

The node that made a change always gets the signal, with the changed scope. Another node gets only
the news that there is a change, and this signal may be lost. On a store with one node no signal is
lost, because that node does not poll for lost signals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairwarning.engine.protocols import Signal
from fairwarning.simulation.plan import Shape

if TYPE_CHECKING:
    from fairwarning.simulation.nodes import Node

AGAIN = 0.2
"""The probability that a delivered signal is delivered again."""


@dataclass(slots=True, eq=False)
class Undelivered:
    node: str
    signal: Signal

    def __str__(self) -> str:
        scope = self.signal.scope
        what = f"revision {scope.revision}" if scope is not None else "look again"
        return f"{self.node} {self.signal.scope_id or 'outside all scopes'} {what}"


class Signals:
    def __init__(self, shape: Shape, nodes: Callable[[], Sequence["Node"]]) -> None:
        self._is_late = shape.has_late_signals
        self._loss = shape.signal_loss if shape.is_shared else 0.0
        self._nodes = nodes
        self._rng = Random(0)
        self.waiting: list[Undelivered] = []

    def send(self, signal: Signal, committer: str | None) -> None:
        """Sends the signal of a commit to the nodes. `committer` is the node that committed."""
        for node in self._nodes():
            if node.is_dead:
                continue
            is_own = node.name == committer
            if not is_own and self._rng.random() < self._loss:
                continue
            told = Undelivered(node.name, signal if is_own else replace(signal, scope=None))
            if self._is_late:
                self.waiting.append(told)
            else:
                self._tell(told)

    def deliver(self, told: Undelivered, rng: Random | None = None) -> None:
        """Delivers a signal. With `rng`, it may be delivered again later."""
        if rng is None or rng.random() >= AGAIN:
            self.waiting.remove(told)
        self._tell(told)

    def kill(self, node: str) -> None:
        self.waiting[:] = [each for each in self.waiting if each.node != node]

    def _tell(self, told: Undelivered) -> None:
        for node in self._nodes():
            if node.name == told.node and not node.is_dead:
                node.store.tell(told.signal)
