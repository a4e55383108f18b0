"""Receivers of notifications in the simulated world, and a sender that records everything."""

from dataclasses import dataclass

from fairwarning.core.instants import Instant
from fairwarning.core.model import operator_actor
from fairwarning.engine.protocols import Position, StoreDown
from fairwarning.notifications import model
from fairwarning.simulation.calls import Calls
from fairwarning.simulation.clock import EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One message that arrived at a target."""

    target_id: str
    position: Position
    """The position of the journal entry that the message is about."""
    node: str
    past: int


class RecordedSender:
    """Sends the messages of one node. A message or the answer to it may be lost."""

    def __init__(self, node: str, calls: Calls, arrived: list[Sent]) -> None:
        self._node = node
        self._calls = calls
        self._arrived = arrived
        self.past = 0

    async def problem(self, _: model.Target) -> str | None:
        return None

    async def send(self, target: model.Target, message: model.Message) -> model.Outcome:
        async def arrive() -> None:
            position = Position(message.id)
            sent = Sent(target_id=target.id, position=position, node=self._node, past=self.past)
            self._arrived.append(sent)

        try:
            detail = f"{target.name} {message.id}"
            await self._calls.intercept(self._node, "send", arrive, detail=detail)
        except StoreDown:
            return model.Outcome(error="simulated loss on the way")
        return model.Outcome()

    async def close(self) -> None:
        """Does nothing; the real sender closes its connections here."""


def targets(number: int) -> list[model.Target]:
    """Returns this many targets. The first gets the default kinds, and the others get all kinds."""
    return [
        model.Target(
            id=f"ntc-{each}",
            name=f"target{each}",
            kind=model.TargetKind.WEBHOOK,
            url="https://example.invalid/",
            filters=model.Filters(
                kinds=tuple(sorted(model.ALL_KINDS)) if each else model.DEFAULT_KINDS
            ),
            created_ms=Instant(EPOCH),
            created_by=operator_actor("sim"),
        )
        for each in range(number)
    ]
