"""Implements `Server` by coroutines that run in the server's event loop."""

import random
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairwarning.common.text_files import read_text
from fairwarning.common.toml_text import parse_toml
from fairwarning.core.commands import Approve, Cancel, Command, Operate, Schedule
from fairwarning.core.faults import Fault
from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.core.journal_text import sentence
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    OperationKind,
    ScopeId,
    operator_actor,
)
from fairwarning.drivers import plugins
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Choice, Entry
from fairwarning.fleet_file.model import Fleet
from fairwarning.fleet_file.read import read_json, read_toml
from fairwarning.metadata.request_watchers import ObservedRequest, RefusedRequest
from fairwarning.metadata.settings import EndpointRules
from fairwarning.node import Node, NodeSettings
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.resolve_names import find_instance
from fairwarning.operator_api.schemas import Event
from fairwarning.operator_api.to_schema import event_of

START = Instant(1_767_225_600_000)
"""2026-01-01T00:00:00Z, the time at which a test begins by default."""
EVENTS_MAX = 10_000  # Far more than a test makes.
NAMES_SHOWN_MAX = 20  # An error message stays readable.
_BY = operator_actor("test")


def read_fleet(fleet: str | Path | dict[str, Any] | None) -> Fleet | None:
    """Read a fleet from a file, its text or a mapping. Returns None for None, the starter fleet.

    The fleet is a test fleet unless it says otherwise.
    """
    if fleet is None:
        return None
    if isinstance(fleet, dict):
        return read_json({"test": True, **fleet}, plugins.catalogue())
    is_file = isinstance(fleet, Path) or ("\n" not in fleet and fleet.endswith(".toml"))
    text = read_text(fleet) if is_file else str(fleet)
    read = read_toml(text, plugins.catalogue())
    _, tables = parse_toml(text)
    return read if "test" in tables else read_json({"test": True, **tables}, plugins.catalogue())


def seeded_ids(seed: int) -> Callable[[], EventId]:
    """Return a function that makes new ids, which are the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311  (they must repeat)
    return lambda: EventId(str(uuid.UUID(int=dice.getrandbits(128), version=4)).upper())


class TimedRequest(NamedTuple):
    """A request, with the time at which it came. The server's own clock mostly stands still."""

    at_s: float
    request: ObservedRequest


class ServerLoop:
    """A node with a virtual clock, and the list of requests that it has answered."""

    def __init__(
        self,
        *,
        fleet: Fleet | None,
        seed: int,
        start: Instant,
        metadata: Sequence[tuple[str, int]],
        rules: EndpointRules,
        on_change: Callable[..., None],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked: list[TimedRequest] = []
        self.refused: list[RefusedRequest] = []
        self._seconds = seconds
        self._on_change = on_change
        self.node = Node(
            NodeSettings(
                store_url="memory:",
                metadata=metadata,
                rules=rules,
                is_clock_virtual=True,
                clock_start=start,
                seed=seed,
                fleet=fleet,
            ),
            ids=seeded_ids(seed),
        )

    async def start(self) -> None:
        await self.node.start()
        self.node.engine.observe(self._on_change)
        self.node.watch(self._note_asked)
        self.node.watch_refusals(self.refused.append)

    async def stop(self) -> None:
        await self.node.stop()

    @property
    def clock(self) -> VirtualClock:
        assert isinstance(self.node.clock, VirtualClock)
        return self.node.clock

    async def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now() / 1000, UTC)

    async def advance(self, by_ms: int) -> None:
        await self.clock.advance(by_ms)
        await self.clock.settle()

    async def schedule(self, type: EventType, targets: Sequence[str], **more: Any) -> Event:
        if not targets:
            raise ValueError('say which instances it is for: schedule("Reboot", "web-0")')
        found = [self.find(each) for each in targets]
        id = self.node.engine.new_id()
        command = Schedule(event_id=id, type=type, targets=tuple(name for _, name in found), **more)
        return await self._submit(found[0][0], id, command)

    async def operate(self, kind: OperationKind, instance: str) -> Event:
        scope_id, name = self.find(instance)
        id = self.node.engine.new_id()
        return await self._submit(scope_id, id, Operate(event_id=id, kind=kind, instance=name))

    async def approve(self, event_id: str) -> Event:
        id, scope_id = await self._find(event_id)
        return await self._submit(scope_id, id, Approve(event_id=id, by=_BY))

    async def cancel(self, event_id: str) -> Event:
        id, scope_id = await self._find(event_id)
        return await self._submit(scope_id, id, Cancel(event_id=id))

    async def event(self, event_id: str) -> Event:
        id, scope_id = await self._find(event_id)
        _, event = await self.node.store.find_event(id)
        entries = await self.node.store.history(event_id=id, limit=EVENTS_MAX)
        return event_of(scope_id, event, reversed(entries))

    async def events(self, *, all: bool) -> list[Event]:
        """Return the events that are not over, or all events if `all` is true, oldest first."""
        found = await self.node.store.events(Choice(), limit=EVENTS_MAX)
        return [
            event_of(scope_id, event)
            for scope_id, event in reversed(found)
            if all or not event.is_finished
        ]

    async def set_fault(self, fault: Fault, after_ms: int, for_ms: int | None) -> Fault:
        for name in fault.instances:
            self._refuse_if_real(name)
        begins = Instant(self.clock.now() + after_ms)
        until = None if for_ms is None else Instant(begins + for_ms)
        from_ms = begins if after_ms else None
        return self.node.faults.set(msgspec.structs.replace(fault, from_ms=from_ms, until_ms=until))

    def _refuse_if_real(self, name: str) -> None:
        self.find(name)
        members = self.node.engine.views.by_name(name)
        if members and not members[0].view.is_test:
            raise ValueError(
                f"{name!r} is in no test fleet, and only there faults strike; "
                "put `test = true` at the top of the fleet file"
            )

    async def clear_faults(self, id: str | None = None) -> int:
        return self.node.faults.clear(id)

    def find(self, name: str) -> tuple[ScopeId, InstanceName]:
        """Return the scope and the name of an instance.

        Raises `LookupError`, which lists the names that exist, if there is no such instance.
        """
        views = self.node.engine.views
        try:
            return find_instance(views, name)
        except Problem as problem:
            if problem.status != 404:
                raise LookupError(problem.detail) from None
            names = ", ".join(views.some_names(NAMES_SHOWN_MAX)) or "none: the fleet is empty"
            raise LookupError(
                f"there is no instance {name!r}; those of this fleet are {names}"
            ) from None

    async def set_reachable(self, is_reachable: bool) -> None:
        self.node.set_reachable(is_reachable)

    async def check_name(self, name: str) -> None:
        self.find(name)

    async def recent_history(self) -> list[str]:
        """Return what has happened, for the error message of a wait that ended without success."""
        entries = await self.node.store.history(limit=20)
        lines = [event_line(each) for each in reversed(entries)]
        asked = [
            f"{format_rfc3339(each.at_ms)} {each.instance} asked for {each.kind}"
            for _, each in self.asked[-5:]
        ]
        return lines + asked

    def _note_asked(self, asked: ObservedRequest) -> None:
        self.asked.append(TimedRequest(self._seconds(), asked))
        self._on_change()

    async def _submit(self, scope_id: ScopeId, id: EventId, command: Command) -> Event:
        await self.node.engine.submit(scope_id, command, by=_BY)
        await self.clock.settle()
        return await self.event(id)

    async def _find(self, event_id: str) -> tuple[EventId, ScopeId]:
        id = EventId(event_id.upper())
        scope_id, _ = await self.node.store.find_event(id)
        return id, scope_id


def event_line(entry: Entry) -> str:
    return f"{format_rfc3339(entry.at_ms)} {sentence(entry.transition)}"


def names(instances: str | Sequence[str] | None) -> tuple[InstanceName, ...]:
    if instances is None:
        return ()
    given = (instances,) if isinstance(instances, str) else instances
    return tuple(InstanceName(each) for each in given)
