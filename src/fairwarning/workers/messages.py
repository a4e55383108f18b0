"""The messages between the engine's process and its workers, and how they become bytes.

A message is a frame: four bytes with its length, and a MessagePack array. A worker sends calls, and
the engine's process answers each with the same number. Both sides also send news, which have no
answer. Both ends are the same program, so the format need not stay the same between versions.
"""

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, Generic, TypeVar, get_args

import msgspec
from msgspec import Struct

from fairwarning.core.commands import Command
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, Event, EventId, InstanceName, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import Unknown, kind_of
from fairwarning.engine.protocols import Entry, Position, SchemaTooNew, StoreDown
from fairwarning.metadata.request_watchers import ObservedRequest
from fairwarning.stores.codec import decode_transition
from fairwarning.stores.codec import encode as encode_json

FRAME_BYTES_MAX = 256 * 1024 * 1024  # Far more than a page of scopes, so that a bug is noticed.
_LENGTH_BYTES = 4

A = TypeVar("A")
R = TypeVar("R")

encode = msgspec.msgpack.Encoder().encode


class Kind(IntEnum):
    CALL = 0
    ANSWER = 1
    REFUSED = 2
    DOWN = 3
    BROKEN = 4
    NEWS = 5
    OUTDATED = 6


class Frame(Struct, frozen=True, array_like=True):
    kind: Kind
    name: str
    """The name of the call or of the news."""
    number: int = 0
    """The number of a call, which its answer repeats. It is 0 for news."""
    body: bytes = b""


class Call(Generic[A, R]):
    """One kind of call, with the types of its argument and of its result."""

    def __init__(self, name: str, argument: Any, result: Any) -> None:
        self.name = name
        self.argument = msgspec.msgpack.Decoder[A](argument)
        self.result = msgspec.msgpack.Decoder[R](result)


class News(Generic[A]):
    """One kind of news, with the type of its content."""

    def __init__(self, name: str, content: Any) -> None:
        self.name = name
        self.content = msgspec.msgpack.Decoder[A](content)


class WireEntry(Struct, frozen=True, array_like=True):
    """An entry of the journal, with its transition as the JSON text that stores keep too."""

    position: Position
    scope_id: ScopeId
    revision: int
    at_ms: Instant
    by: Actor
    why: str
    kind: str
    body: str

    @classmethod
    def of(cls, entry: Entry) -> "WireEntry":
        transition = entry.transition
        body = transition.body if isinstance(transition, Unknown) else encode_json(transition)
        return cls(
            entry.position, entry.scope_id, entry.revision, entry.at_ms, entry.by, entry.why,
            kind_of(transition), body,
        )  # fmt: skip

    def entry(self) -> Entry:
        return Entry(
            position=self.position,
            scope_id=self.scope_id,
            revision=self.revision,
            at_ms=self.at_ms,
            by=self.by,
            why=self.why,
            transition=decode_transition(self.kind, self.body),
        )


class Submission(Struct, frozen=True, array_like=True):
    scope_id: ScopeId
    kind: str
    """The name of the command's class."""
    command: bytes
    by: Actor


class Submitted(Struct, frozen=True, array_like=True):
    scope: Scope
    at_ms: Instant


class PageAfter(Struct, frozen=True, array_like=True):
    after: ScopeId | None
    limit: int


class JournalPage(Struct, frozen=True, array_like=True):
    position: Position | None
    limit: int
    is_inclusive: bool = False


class Polled(Struct, frozen=True, array_like=True):
    """How often an instance has polled a worker since the last report, and with which program."""

    scope_id: ScopeId
    name: InstanceName
    polls: int
    agent: str


class Report(Struct, frozen=True, array_like=True):
    """What a worker tells about itself from time to time."""

    answers: int
    """How many responses it has sent since it started."""
    connections: int
    polled: Sequence[Polled] = ()
    asked: Sequence[ScopeId] = ()
    """The scopes whose instances have asked since the last report, or wait now."""


class Hello(Struct, frozen=True, array_like=True):
    """The first news of a worker on a new connection."""

    number: int
    pid: int
    version: str
    """The version of the program. The messages of another version may differ."""


class SteppedBack(Struct, frozen=True, array_like=True):
    common_ms: Instant | None
    lost: Sequence[ScopeId]


READ = Call[ScopeId, Scope]("read", ScopeId, Scope)
SCOPES = Call[PageAfter, list[Scope]]("scopes", PageAfter, list[Scope])
FIND_EVENT = Call[EventId, tuple[ScopeId, Event]]("find-event", EventId, tuple[ScopeId, Event])
JOURNAL = Call[JournalPage, list[WireEntry]]("journal", JournalPage, list[WireEntry])
HISTORY = Call[JournalPage, list[WireEntry]]("history", JournalPage, list[WireEntry])
SUBMIT = Call[Submission, Submitted]("submit", Submission, Submitted)
CHECK_PAST = Call[None, None]("check-past", None, None)

HELLO = News[Hello]("hello", Hello)
REPORT = News[Report]("report", Report)
WATCH = News[bool]("watch", bool)
OBSERVED = News[ObservedRequest]("observed", ObservedRequest)
SHOWN = News[Scope]("shown", Scope)
AGE = News[float]("age", float)
"""How many seconds ago the engine's process last read all changes of other nodes."""
STEPPED_BACK = News[SteppedBack]("stepped-back", SteppedBack)

_COMMANDS = {each.__name__: each for each in get_args(Command)}
_frames = msgspec.msgpack.Decoder(Frame)


@lru_cache(len(_COMMANDS))
def _command_decoder(kind: str) -> msgspec.msgpack.Decoder[Command]:
    return msgspec.msgpack.Decoder(_COMMANDS[kind])


def submission(scope_id: ScopeId, command: Command, by: Actor) -> Submission:
    return Submission(scope_id, type(command).__name__, encode(command), by)


def command_of(given: Submission) -> Command:
    return _command_decoder(given.kind).decode(given.command)


def failure(frame: Frame, error: Exception) -> Frame:
    """Return the answer to a call that raised this exception."""
    if isinstance(error, Refused):
        return Frame(Kind.REFUSED, frame.name, frame.number, encode((error.code, error.message)))
    kind = Kind.DOWN if isinstance(error, StoreDown) else Kind.BROKEN
    if isinstance(error, SchemaTooNew):
        kind = Kind.OUTDATED
    return Frame(kind, frame.name, frame.number, encode(str(error)))


def raised_by(frame: Frame) -> Exception:
    """Return the exception that an answer other than ANSWER stands for."""
    if frame.kind is Kind.REFUSED:
        code, message = msgspec.msgpack.decode(frame.body, type=tuple[Code, str])
        return Refused(code, message)
    text = msgspec.msgpack.decode(frame.body, type=str)
    if frame.kind is Kind.OUTDATED:
        return SchemaTooNew(text)
    if frame.kind is Kind.DOWN:
        return StoreDown(text)
    return RuntimeError(f"the engine's process could not answer {frame.name}: {text}")


def to_bytes(frame: Frame) -> bytes:
    body = encode(frame)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


async def receive(reader: asyncio.StreamReader) -> Frame | None:
    """Return the next frame, or None at the end of the connection."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
        if length > FRAME_BYTES_MAX:
            return None
        return _frames.decode(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, OSError):
        return None
