"""The types of the records of a round, and the files with these records.

A record is one line of JSON. An instant is the time of two clocks: `mono_s` is CLOCK_MONOTONIC,
which all processes of a machine share, and `wall_ms` is the wall clock, which NotBefore refers to.
"""

import hashlib
import time
from collections.abc import Iterable
from io import BufferedWriter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

DRIVER_LOG = "driver.jsonl"


class At(NamedTuple):
    mono_s: float
    wall_ms: float


def now() -> At:
    return At(round(time.monotonic(), 6), round(time.time() * 1000, 3))


class Scope(Struct, tag="scope", tag_field="record", kw_only=True):
    """A scope as it was declared, and its state at the start of the round."""

    id: str
    name: str
    kind: str
    test: bool
    instances: list[str]
    minimum_notice_s: dict[str, int]
    """The declared minimum notice for each type of event."""
    terminate_notice_s: int | None
    """The notice of a delete. It is None if deletes are not announced."""
    policies: list[str]
    """What the owner approves in advance, named as in the history."""
    activated: bool
    incarnation: int


class Request(Struct, tag="request", tag_field="record", kw_only=True):
    """A caller's request to the operator API, and its answer."""

    who: str
    label: str
    """A name that all tries of a request share. It is sent as `why`, so the history has it too."""
    what: str
    """The kind of request: `schedule`, `cancel`, `restart` …"""
    node: str
    path: str
    body: dict[str, Any] | None
    key: str | None
    """The Idempotency-Key, if one was sent."""
    sent: At
    answered: At | None = None
    """When the answer came. None means that nobody knows whether it was carried out."""
    status: int | None = None
    answer: dict[str, Any] | None = None


class Poll(Struct, tag="poll", tag_field="record", kw_only=True):
    """A request of an instance for its document, with the answer."""

    instance: str
    node: str
    """The process that was asked. `node-1.2` is the second process of node 1."""
    version: str
    sent_tag: str | None
    wait_s: int
    sent: At
    answered: At | None = None
    status: int | None = None
    tag: str | None = None
    document: str | None = None
    """The digest of the `Document` in the answer, if there was one."""
    is_last: bool = False
    """Whether the poll was sent after all events had ended."""
    failed: At | None = None
    """When the instance learned that there is no answer. None if it hung up by itself."""


class Document(Struct, tag="document", tag_field="record", kw_only=True):
    """The content of a document. It is kept once, although many polls get the same."""

    digest: str
    text: str


class Approval(Struct, tag="approval", tag_field="record", kw_only=True):
    """An instance's POST of StartRequests, and the answer."""

    instance: str
    node: str
    version: str
    events: list[str]
    is_foreign: bool
    """Whether the events belong to another scope, so that the server must refuse."""
    sent: At
    answered: At | None = None
    status: int | None = None
    answer: str = ""


class NodeChange(Struct, tag="node", tag_field="record", kw_only=True):
    """A change of a server process.

    The change is `started`, `ready`, `killed`, `stopped`, `paused` or `continued`. It is `died` if
    the process ended by itself, and `error` for an error in its log.
    """

    node: str
    change: str
    at: At
    detail: str = ""


class Fault(Struct, tag="fault", tag_field="record", kw_only=True):
    """Something that was done to a server, to the database or to the network between them."""

    name: str
    detail: str
    """What it was done to, and how."""
    began: At
    ended: At
    """When it was undone."""
    writable: At
    """When the database was first seen to commit a write after the fault."""
    clock_step_ms: float = 0.0
    """By how much the clock of the database was wrong meanwhile."""


class ClockReading(Struct, tag="clock", tag_field="record", kw_only=True):
    """Both clocks at one moment, and how much later than planned they were read."""

    at: At
    late_s: float


class OrderedInstance(Struct, kw_only=True):
    name: str
    handle: str
    domain: int


class DriverCall(Struct, tag="driver", tag_field="record", kw_only=True):
    """A line of the driver's own log. `do` and `find` are the calls of the driver. `begin` and
    `end` are the impact itself. `join` and `refuse` say why an order was not carried out.
    """

    what: str
    key: str
    attempt: int
    pid: int
    at: At
    node: str = ""
    """The node that sent the order, if the order names it."""
    scope: str = ""
    type: str = ""
    operation: str | None = None
    instances: list[OrderedInstance] = field(default_factory=list)
    outcome: str = ""
    """For `find`, its answer. For `end`, it is `done`, `failed` or `interrupted`."""


class Entry(Struct, tag="entry", tag_field="record", kw_only=True):
    """A line of the history, as the operator API shows it."""

    position: str
    at_ms: int
    scope: str
    event: str | None
    kind: str
    by: str
    why: str
    data: dict[str, Any]


Record = (
    Scope
    | Request
    | Poll
    | Document
    | Approval
    | NodeChange
    | Fault
    | ClockReading
    | DriverCall
    | Entry
)

_FILES: dict[type[Record], str] = {
    Scope: "scopes.jsonl",
    Request: "requests.jsonl",
    Poll: "polls.jsonl",
    Document: "polls.jsonl",
    Approval: "polls.jsonl",
    NodeChange: "nodes.jsonl",
    Fault: "nodes.jsonl",
    ClockReading: "nodes.jsonl",
    DriverCall: DRIVER_LOG,
    Entry: "history.jsonl",
}


class Records:
    """All records of one round, by type, each in the order in which they were written."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.scopes: list[Scope] = []
        self.requests: list[Request] = []
        self.polls: list[Poll] = []
        self.documents: dict[str, str] = {}
        self.approvals: list[Approval] = []
        self.nodes: list[NodeChange] = []
        self.faults: list[Fault] = []
        self.clocks: list[ClockReading] = []
        self.driver: list[DriverCall] = []
        self.history: list[Entry] = []
        """The history, oldest first."""
        self._lists: dict[type[Record], list[Any]] = {
            Scope: self.scopes,
            Request: self.requests,
            Poll: self.polls,
            Approval: self.approvals,
            NodeChange: self.nodes,
            Fault: self.faults,
            ClockReading: self.clocks,
            DriverCall: self.driver,
            Entry: self.history,
        }
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        if isinstance(record, Document):
            self.documents[record.digest] = record.text
        else:
            self._lists[type(record)].append(record)


class Recorder:
    """Keeps the records of one round, in memory for the checks and in files for people."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._files: dict[str, BufferedWriter] = {}
        self.records = Records()

    def add(self, record: Record) -> None:
        self.records.add(record)
        name = _FILES[type(record)]
        if name not in self._files:
            self._files[name] = (self._folder / name).open("ab")
        self._files[name].write(msgspec.json.encode(record) + b"\n")

    def add_document(self, body: bytes) -> str:
        """Records a document, unless it is known already, and returns its digest."""
        digest = hashlib.sha256(body).hexdigest()[:20]
        if digest not in self.records.documents:
            self.add(Document(digest=digest, text=body.decode(errors="replace")))
        return digest

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}


class BadRecords(Exception):
    """The folder has no records, or a line in it is not a record."""


def read_folder(folder: Path) -> Records:
    """Reads all records in the folder of a round. Raises BadRecords if it cannot."""
    records = Records()
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise BadRecords(f"{folder} has no records; name the folder of one round")
    for file in files:
        for record in read_lines(file):
            records.add(record)
    return records


def read_lines(file: Path) -> list[Record]:
    decoder = msgspec.json.Decoder(Record)
    found: list[Record] = []
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            found.append(decoder.decode(line))
        except msgspec.DecodeError as problem:
            raise BadRecords(f"{file}, line {number}: {problem}") from None
    return found
