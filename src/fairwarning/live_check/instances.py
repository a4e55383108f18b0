"""Instances that poll for their document and approve at random."""

import asyncio
import random
from dataclasses import dataclass
from typing import Any

import msgspec

from fairwarning.live_check.fleet import Declared
from fairwarning.live_check.http import Answer, Connection, NoAnswer, request_bytes, send_and_leave
from fairwarning.live_check.nodes import Node
from fairwarning.live_check.records import Approval, Poll, now
from fairwarning.live_check.world import ANSWER_S_MAX, World

VERSIONS = (
    "2020-07-01", "2019-08-01", "2019-04-01", "2019-01-01", "2017-11-01", "2017-08-01",
    "2017-03-01",
)  # fmt: skip
_WAIT_S = 3  # Shorter than the pause between two kills.
_METADATA = {"Metadata": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerSettings:
    """How one poller polls. The pollers differ, so that every way of polling is used."""

    version: str
    sends_tag: bool
    waits: bool
    keeps_connection: bool
    pause_s: float

    @classmethod
    def of(cls, number: int, *, test: bool) -> "PollerSettings":
        return cls(
            version=VERSIONS[number % len(VERSIONS)],
            sends_tag=number % 3 != 0,
            waits=number % 3 == 1,
            keeps_connection=number % 2 == 0,
            # Outside a test fleet an instance may poll five times a second.
            pause_s=0.4 if test else 1.0,
        )


class Poller:
    def __init__(self, world: World, scope: Declared, name: str, settings: PollerSettings) -> None:
        self._world = world
        self._scope = scope
        self._name = name
        self._settings = settings
        self._chance = world.chance(f"instance {name}")
        self._connection = Connection(is_kept=settings.keeps_connection)
        self._node: Node | None = None
        self._tag: str | None = None

    async def run(self) -> None:
        """Polls and approves until this task is cancelled."""
        try:
            while True:
                await self._turn()
                # Sometimes it polls again at once, perhaps from a node that is behind.
                if not self._scope.test or self._chance.random() < 0.8:
                    await asyncio.sleep(self._chance.uniform(0, 2 * self._settings.pause_s))
        finally:
            self._connection.close()

    async def _turn(self) -> None:
        node = await self._choose_node()
        if self._chance.random() < 0.02:
            await self._hang_up(node)
            return
        poll = await ask_document(
            self._world,
            node,
            self._connection,
            self._name,
            self._settings.version,
            tag=self._tag if self._settings.sends_tag else None,
            wait_s=_WAIT_S if self._settings.waits and self._tag else 0,
        )
        if poll.status == 404:
            await self._change_name(node)
        elif poll.status == 200 and poll.document is not None:
            self._tag = poll.tag
            await self._decide(node, self._world.recorder.records.documents[poll.document])

    async def _choose_node(self) -> Node:
        """Returns the node to poll, which is mostly that of the last poll."""
        if self._node is None or not self._node.is_up or self._chance.random() < 0.3:
            self._node = await self._world.any_node(self._chance)
        return self._node

    async def _decide(self, node: Node, document: str) -> None:
        shown: list[dict[str, Any]] = msgspec.json.decode(document).get("Events", [])
        recent = self._world.recent[self._scope.name]
        for each in shown:
            if each["EventId"] not in recent:
                recent.append(each["EventId"])
        waiting = [each["EventId"] for each in shown if each["EventStatus"] == "Scheduled"]
        wanted = [id for id in waiting if self._chance.random() < 0.25]
        if wanted:
            await self._approve(node, wanted)
            if self._chance.random() < 0.2:
                await self._approve(node, wanted)
        elif recent and self._chance.random() < 0.05:
            # The event may be over, which the instance could not know.
            await self._approve(node, [self._chance.choice(recent)])
        elif self._chance.random() < 0.03:
            await self._approve_foreign(node)

    async def _approve_foreign(self, node: Node) -> None:
        others = [
            id
            for scope, ids in self._world.recent.items()
            if scope != self._scope.name
            for id in ids
        ]
        if others:
            await self._approve(node, [self._chance.choice(others)], is_foreign=True)

    async def _approve(self, node: Node, events: list[str], *, is_foreign: bool = False) -> None:
        version = self._settings.version
        approval = Approval(
            instance=self._name,
            node=node.name,
            version=version,
            events=events,
            is_foreign=is_foreign,
            sent=now(),
        )
        body = msgspec.json.encode({"StartRequests": [{"EventId": id} for id in events]})
        try:
            answer = await self._connection.ask(
                node.metadata_url,
                "POST",
                _path(self._name, version),
                _METADATA,
                body,
                within_s=ANSWER_S_MAX,
            )
        except NoAnswer:
            pass
        else:
            approval.answered, approval.status = now(), answer.status
            approval.answer = answer.body.decode(errors="replace")
        finally:
            self._world.recorder.add(approval)

    async def _hang_up(self, node: Node) -> None:
        wait_s = 30 if self._tag else 0
        path = _path(self._name, self._settings.version, wait_s)
        whole = request_bytes(
            node.metadata_url, "GET", path, _headers(self._tag), b"", is_kept=False
        )
        poll = _new_poll(node, self._name, self._settings.version, self._tag, wait_s)
        try:
            await send_and_leave(node.metadata_url, whole)
        finally:
            self._world.recorder.add(poll)

    async def _change_name(self, node: Node) -> None:
        """Takes the name of another instance, because this one was deleted."""
        await self._world.refresh_members(self._scope.name, node)
        members = self._world.members[self._scope.name]
        if members:
            self._name, self._tag = self._chance.choice(members), None


async def ask_document(
    world: World,
    node: Node,
    connection: Connection,
    instance: str,
    version: str,
    *,
    tag: str | None = None,
    wait_s: int = 0,
    is_last: bool = False,
) -> Poll:
    """Polls once and records the answer."""
    poll = _new_poll(node, instance, version, tag, wait_s)
    poll.is_last = is_last
    path, headers = _path(instance, version, wait_s), _headers(tag)
    try:
        answer = await connection.ask(
            node.metadata_url, "GET", path, headers, within_s=ANSWER_S_MAX + wait_s
        )
    except NoAnswer:
        poll.failed = now()
    else:
        _fill(world, poll, answer)
    finally:
        world.recorder.add(poll)
    return poll


def _new_poll(node: Node, instance: str, version: str, tag: str | None, wait_s: int) -> Poll:
    return Poll(
        instance=instance, node=node.name, version=version, sent_tag=tag, wait_s=wait_s, sent=now()
    )


def _fill(world: World, poll: Poll, answer: Answer) -> None:
    poll.answered, poll.status = now(), answer.status
    poll.tag = answer.headers.get("etag")
    if answer.status == 200:
        poll.document = world.recorder.add_document(answer.body)


def _path(instance: str, version: str, wait_s: int = 0) -> str:
    path = f"/vm/{instance}/metadata/scheduledevents?api-version={version}"
    return f"{path}&wait={wait_s}" if wait_s else path


def _headers(tag: str | None) -> dict[str, str]:
    return _METADATA | ({"If-None-Match": tag} if tag else {})


def pollers(world: World, fleet: tuple[Declared, ...]) -> list[Poller]:
    """Returns a poller for each instance that polls."""
    named = [
        (scope, name) for scope in fleet if scope.is_watched for name in world.members[scope.name]
    ]
    return [
        Poller(world, scope, name, PollerSettings.of(number, test=scope.test))
        for number, (scope, name) in enumerate(named)
    ]


def random_member(world: World, scope: str, chance: random.Random) -> str | None:
    members = world.members[scope]
    return chance.choice(members) if members else None
