"""Plays one round: creates load, waits until all events have ended, and collects the records.

At the end of the load every server is killed, so that no request is under way any more. All that
was acknowledged before must still be there after the restart.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from fairwarning.live_check.callers import callers
from fairwarning.live_check.disturbances import Disturbance
from fairwarning.live_check.fleet import FLEET, scope_record
from fairwarning.live_check.http import Connection
from fairwarning.live_check.instances import VERSIONS, ask_document, pollers
from fairwarning.live_check.nodes import Node
from fairwarning.live_check.records import DRIVER_LOG, At, ClockReading, Entry, read_lines
from fairwarning.live_check.world import World, new_request

_LOOK_PAUSE_S = 0.25  # Often enough, and cheap for the server.
_QUIET_S = 1.0  # Longer than an impact usually takes.
_PAGE = 500  # The largest page that the operator API gives.
_APPROVED_SHARE = 0.7  # Both ways to end an event must be used.

_WATCH_PAUSE_S = 0.1  # A server that died must be restarted soon.
_READING_EVERY_S = 1.0  # Enough to notice that a clock was set.
_LATE_S = 0.25  # More than the usual delay of a loaded machine.


class CutOff(Exception):
    """The round could not be finished, because no server answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSettings:
    lease_s: float
    end_within_s: float
    """All events must end within this time after the load."""


class Round:
    def __init__(
        self,
        world: World,
        name: str,
        folder: Path,
        settings: RoundSettings,
        disturbances: Sequence[Disturbance],
    ) -> None:
        self._world = world
        self._disturbances = disturbances
        self._name = name
        self._folder = folder
        self._settings = settings
        self._chance = world.chance("round")

    async def play(self, load_s: float, stopping: asyncio.Event) -> None:
        """Plays the round and records it. Raises CannotServe or CutOff if no server answers."""
        world = self._world
        begin = await self._record_start()
        watching = asyncio.create_task(_watch(world))
        polling = [asyncio.create_task(each.run()) for each in pollers(world, FLEET)]
        try:
            await self._load(load_s, stopping, [watching, *polling])
            await self._restart_all()
            await self._settle()
            await self._ask_last(polling)
            await self._collect(begin)
        finally:
            await _end_all([watching, *polling])

    async def _record_start(self) -> str:
        """Records the fleet, and returns the position of the newest entry of the history."""
        await self._refill_scale_sets()
        fleet = await self._read("/fleet?limit=500")
        for shown in fleet["scopes"]:
            scope = scope_record(shown)
            self._world.recorder.add(scope)
            self._world.members[scope.name] = scope.instances
        newest = await self._read("/history?limit=1")
        return str(newest["entries"][0]["position"])

    async def _refill_scale_sets(self) -> None:
        """Scales up the scale sets that lost instances in the last round."""
        for scope in (each for each in FLEET if each.capacity):
            shown = await self._read(f"/fleet?search={scope.name}")
            if sum(each["capacity"] for each in shown["scopes"]) < scope.capacity:
                node = await self._world.any_node(self._chance)
                body = {"capacity": scope.capacity}
                label = f"{self._name}-begin-{scope.name}"
                path = f"/scopes/{scope.name}/scale"
                await self._world.ask(node, new_request(node, "round", label, "scale", path, body))

    async def _load(
        self, load_s: float, stopping: asyncio.Event, others: list[asyncio.Task[None]]
    ) -> None:
        world, over = self._world, asyncio.Event()
        calling = [asyncio.create_task(each) for each in callers(world, self._name)]
        disturbing = [asyncio.create_task(each(world, over)) for each in self._disturbances]
        stopped = asyncio.create_task(stopping.wait())
        everything = [stopped, *calling, *disturbing, *others]
        try:
            await asyncio.wait(everything, timeout=load_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.set()
            stopped.cancel()
            await _end_all(calling)
            # These are not cancelled, because a server that is just starting must become ready.
            await asyncio.gather(*disturbing)

    async def _restart_all(self) -> None:
        for node in self._world.nodes:
            async with node.busy:
                await node.kill(self._world.note)
        for node in self._world.nodes:
            async with node.busy:
                await node.start(self._world.note)

    async def _settle(self) -> None:
        """Approves or cancels all pending events, and waits until they end or time is up."""
        deadline_s = time.monotonic() + self._settings.end_within_s
        decided: set[str] = set()
        while time.monotonic() < deadline_s:
            node = await self._world.any_node(self._chance)
            path = f"/events?phase=scheduled&phase=started&limit={_PAGE}"
            pending = await self._world.read(node, path)
            if pending is not None and not pending["events"]:
                break
            for event in (pending or {"events": []})["events"]:
                if event["phase"] == "scheduled" and event["id"] not in decided:
                    await self._decide(node, event["id"], decided)
            await asyncio.sleep(_LOOK_PAUSE_S)
        await self._wait_for_driver(deadline_s)

    async def _decide(self, node: Node, id: str, decided: set[str]) -> None:
        what = "approve" if self._chance.random() < _APPROVED_SHARE else "cancel"
        label = f"{self._name}-end-{len(decided) + 1}"
        request = new_request(node, "round", label, what, f"/events/{id}/{what}", None)
        if (await self._world.ask(node, request)).status is not None:
            decided.add(id)

    async def _wait_for_driver(self, deadline_s: float) -> None:
        """Waits until the driver's log stops growing, so that late orders are in it too."""
        log, size, since_s = self._folder.parent / DRIVER_LOG, -1, time.monotonic()
        while time.monotonic() < max(deadline_s, since_s + _QUIET_S):
            grown = log.stat().st_size if log.exists() else 0
            if grown != size:
                size, since_s = grown, time.monotonic()
            elif time.monotonic() - since_s > _QUIET_S:
                return
            await asyncio.sleep(_LOOK_PAUSE_S)

    async def _ask_last(self, polling: list[asyncio.Task[None]]) -> None:
        """Polls every node for every instance until no event is shown or time is up."""
        await _end_all(polling)
        world, deadline_s = self._world, time.monotonic() + self._settings.end_within_s
        for scope in (each for each in FLEET if each.is_watched):
            await world.refresh_members(scope.name, world.nodes[0])
        asked = [
            (node, name)
            for node in world.nodes
            for scope in FLEET
            if scope.is_watched
            for name in world.members[scope.name]
        ]
        for node, name in asked:
            while await self._is_shown_something(node, name):
                if time.monotonic() > deadline_s:
                    break
                await asyncio.sleep(_LOOK_PAUSE_S)
            connection = Connection(is_kept=False)
            await ask_document(world, node, connection, name, VERSIONS[0], is_last=True)

    async def _is_shown_something(self, node: Node, name: str) -> bool:
        poll = await ask_document(self._world, node, Connection(is_kept=False), name, VERSIONS[0])
        if poll.status == 429:
            # Outside a test fleet there is a rate limit, and earlier polls count too. Ask again.
            return True
        if poll.document is None:
            return False
        document = self._world.recorder.records.documents[poll.document]
        return bool(msgspec.json.decode(document)["Events"])

    async def _collect(self, begin: str) -> None:
        """Records the history since `begin`, the servers' errors and the driver's log."""
        world = self._world
        for shown in reversed(await history_since(begin, self._read)):
            world.recorder.add(_entry(shown))
        for node in world.nodes:
            node.note_errors(world.note)
        log = self._folder.parent / DRIVER_LOG
        if log.exists():
            kept = log.rename(self._folder / DRIVER_LOG)
            for record in read_lines(kept):
                world.recorder.records.add(record)

    async def _read(self, path: str) -> dict[str, Any]:
        """Returns the answer of any node to a GET. Raises CutOff if none answers for too long."""
        deadline_s = time.monotonic() + self._settings.end_within_s
        while time.monotonic() < deadline_s:
            node = await self._world.any_node(self._chance)
            found = await self._world.read(node, path)
            if found is not None:
                return found
            await asyncio.sleep(_LOOK_PAUSE_S)
        raise CutOff(f"no server answered GET /api/v1{path}")


async def history_since(
    begin: str, read: Callable[[str], Awaitable[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Returns the entries of the history after the position `begin`, newest first."""
    entries: list[dict[str, Any]] = []
    after = ""
    while True:
        page = await read(f"/history?limit={_PAGE}{after}")
        for shown in page["entries"]:
            if shown["position"] == begin:
                return entries
            entries.append(shown)
        if page["next"] is None:
            return entries
        after = f"&after={quote(page['next'])}"


def _entry(shown: dict[str, Any]) -> Entry:
    at = datetime.fromisoformat(shown["at"])
    return Entry(
        position=shown["position"],
        at_ms=round(at.timestamp() * 1000),
        scope=shown["scope"],
        event=shown["event"],
        kind=shown["kind"],
        by=shown["by"],
        why=shown["why"],
        data=shown["data"],
    )


async def _end_all(tasks: list[asyncio.Task[None]]) -> None:
    """Cancels all tasks and waits for their end. Raises the first error of a task."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


async def _watch(world: World) -> None:
    """Restarts and records servers that end by themselves, until this task is cancelled. It also
    records the clocks, and how late the machine lets this task run.
    """
    planned_s = read_s = time.monotonic()
    while True:
        for node in world.nodes:
            if node.has_died and not node.busy.locked():
                await _revive(world, node)
        planned_s = max(planned_s + _WATCH_PAUSE_S, time.monotonic())
        await asyncio.sleep(max(0.0, planned_s - time.monotonic()))
        late_s = time.monotonic() - planned_s
        if late_s > _LATE_S or time.monotonic() - read_s > _READING_EVERY_S:
            read_s = time.monotonic()
            world.recorder.add(ClockReading(at=_both_clocks(), late_s=round(late_s, 3)))


async def _revive(world: World, node: Node) -> None:
    async with node.busy:
        node.note_death(world.note)
        await node.start(world.note)


def _both_clocks() -> At:
    """Reads both clocks at almost the same moment."""
    for _ in range(100):
        before_s, wall_ms, after_s = time.monotonic(), time.time() * 1000, time.monotonic()
        if after_s - before_s < 0.000_2:
            break
    return At(round(before_s, 6), round(wall_ms, 3))
