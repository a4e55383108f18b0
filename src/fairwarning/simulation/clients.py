"""Clients that poll. They send HTTP to the real endpoint of a node, without a network.

A client keeps the tag of its last document, and uses it with every node, as it would behind a load
balancer. It may ask the node to hold a poll, approve the events that it was shown, or go away.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, InstanceName, ScopeId
from fairwarning.engine.scope_view import View
from fairwarning.metadata.connection import Connection

if TYPE_CHECKING:
    from fairwarning.simulation.nodes import Node

OK, NOT_MODIFIED = 200, 304


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request of a client."""

    node: "Node"
    tag: str
    """The tag that the request sends in If-None-Match. It may be empty."""
    document: bytes
    """The document that the tag names, in the newest api-version. It may be empty."""
    wait_s: int
    version: str
    asked_ms: Instant
    clock_steps: int
    """How often the store's clock had been set wrong before the request."""
    approves: tuple[EventId, ...] = ()
    past: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPoll:
    """A poll that the endpoint holds until the next change, or until its time is up."""

    question: Question
    view: View
    until_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    client: "Client"
    question: Question
    status: int
    tag: str
    body: bytes
    at_ms: Instant
    past: int


class _Transport:
    """The asyncio transport of one connection."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.is_open = True
        self.is_cut = False
        """Whether the connection is lost without the node knowing this."""

    def write(self, data: bytes) -> None:
        if self.is_open:
            self._client.receive(self, data)
        elif self.is_cut:
            self._client.lose(data)

    def close(self) -> None:
        self.is_open = False

    abort = close

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        """Does nothing, because the client sends nothing before it has its answer."""

    resume_reading = pause_reading

    def get_extra_info(self, _: str) -> Any:
        raise AssertionError("there is no socket")


class Client:
    def __init__(self, scope_id: ScopeId, name: InstanceName, address: str | None) -> None:
        self.scope_id = scope_id
        self.name = name
        self.address = address
        """The address from which the client polls. None means loopback, where it names itself."""
        self.tag = ""
        self.document = b""
        self.shown: tuple[EventId, ...] = ()
        """The ids of the events in the client's last document."""
        self.ever_shown: set[EventId] = set()
        self.question: Question | None = None
        self.answers: list[Answered] = []
        """Answers that no checker has looked at yet."""
        self.now: Callable[[], Instant] = lambda: Instant(0)
        self.past: Callable[[], int] = lambda: 0
        self._transport: _Transport | None = None
        self._connection: Connection | None = None

    def poll(self, question: Question) -> None:
        wait = f"&wait={question.wait_s}" if question.wait_s else ""
        headers = f'If-None-Match: "{question.tag}"\r\n' if question.tag else ""
        self._ask(question, "GET", f"api-version={question.version}{wait}", headers, "")

    def approve(self, question: Question) -> None:
        body = json.dumps({"StartRequests": [{"EventId": id} for id in question.approves]})
        headers = f"Content-Length: {len(body)}\r\n"
        self._ask(question, "POST", f"api-version={question.version}", headers, body)

    def leave(self) -> None:
        """Closes the connection. The client does not get an answer that is still to come."""
        connection, self._connection, self.question = self._connection, None, None
        if self._transport is not None:
            self._transport.is_open = False
        if connection is not None:
            connection.connection_lost(None)

    def cut_off(self) -> None:
        """Drops the connection without telling the node, because the node ends."""
        self._connection, self.question = None, None
        if self._transport is not None:
            self._transport.is_open, self._transport.is_cut = False, True

    def lose(self, data: bytes) -> None:
        """Loses an answer. Its events count as shown, because the node believes so."""
        head, _, body = data.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200") and b'"Events"' in body:
            self.ever_shown.update(each["EventId"] for each in json.loads(body)["Events"])

    def held(self) -> HeldPoll | None:
        """Returns the poll that the endpoint holds for this client, or None."""
        held = None if self._connection is None else self._connection._held_poll
        if held is None or held.timer is None or self.question is None:
            return None
        view, until_s = held.member.view, held.timer.when()
        return HeldPoll(question=self.question, view=view, until_s=until_s)

    def receive(self, transport: _Transport, data: bytes) -> None:
        if transport is not self._transport or self.question is None:
            return
        head, _, body = data.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        headers = dict(each.split(": ", 1) for each in rest)
        question, self.question = self.question, None
        answered = Answered(
            client=self,
            question=question,
            status=int(first.split()[1]),
            tag=headers.get("ETag", "").strip('"'),
            body=body,
            at_ms=self.now(),
            past=self.past(),
        )
        self.answers.append(answered)
        if answered.status == OK and not question.approves:
            self.tag = answered.tag
            self.document = body if question.version == NEWEST.name else b""
            self.shown = tuple(each["EventId"] for each in json.loads(body)["Events"])
            self.ever_shown.update(self.shown)

    def _ask(self, question: Question, method: str, query: str, headers: str, body: str) -> None:
        service = question.node.service
        assert service is not None
        on_loopback = self.address is None
        self.leave()
        self.question = question
        # Each request has its own connection. A kept connection would run the same code.
        self._transport = _Transport(self)
        self._connection = Connection(service, self.address or "127.0.0.1", on_loopback=on_loopback)
        self._connection.connection_made(cast(asyncio.Transport, self._transport))
        base = f"/vm/{self.name}" if on_loopback else ""
        request = (
            f"{method} {base}/metadata/scheduledevents?{query} HTTP/1.1\r\n"
            f"Host: 169.254.169.254\r\nMetadata: true\r\n{headers}\r\n{body}"
        )
        self._connection.data_received(request.encode())
