"""Follows the server's stream of transitions. It reconnects, and yields each entry once."""

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

from msgspec import Struct

from fairwarning.common.command_errors import Disconnected

PAUSE_S_MIN = 0.5  # A restarting server is back soon.
PAUSE_S_MAX = 10.0  # A person who watches should not wait longer after an outage.
WAIT_S_MAX = 1.0  # Ctrl-C that arrives just before a wait begins is noticed when the wait ends.
OpenStream = Callable[[str | None], AbstractContextManager[Iterator[str]]]


class Entry(Struct, frozen=True):
    body: dict[str, Any]


class Lost(Struct, frozen=True):
    reason: str


class Back(Struct, frozen=True):
    """An item of the stream which says that the connection was lost and is open again. No entry is
    missing.
    """


Happening = Entry | Lost | Back


def follow(
    open_stream: OpenStream, after: str | None, pause: Callable[[float], None] = time.sleep
) -> Iterator[Happening]:
    """Yield the entries that follow the one with the id `after`, without end.

    It reconnects by itself, and raises `Problem` if the server refuses the stream.
    """
    last, failures, connections = after, 0, 0
    parser = Parser()
    while True:
        try:
            with open_stream(last) as lines:
                failures, connections = 0, connections + 1
                if connections > 1:
                    yield Back()
                for message in messages(parser, lines):
                    last = message.id or last
                    yield Entry(json.loads(message.data))
        except Disconnected as gone:
            failures += 1
            yield Lost(str(gone))
        asked_s = (parser.retry_ms or 0) / 1000
        pause(min(PAUSE_S_MAX, max(asked_s, PAUSE_S_MIN * 2**failures)))
        parser = Parser()


class Feed:
    """Runs `follow` on a thread, for a reader that also waits for a timeout or a key."""

    def __init__(self, open_stream: OpenStream, after: str | None) -> None:
        self._happenings: queue.SimpleQueue[Happening | Exception] = queue.SimpleQueue()
        self._source = follow(open_stream, after)
        threading.Thread(target=self._run, name="feed", daemon=True).start()

    def next(self, timeout_s: float | None = None) -> Happening | None:
        """Return the next item, or None after `timeout_s`. Raises the error that ended `follow`."""
        try:
            found = self._get(timeout_s)
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def _get(self, timeout_s: float | None) -> Happening | Exception:
        while timeout_s is None:
            with suppress(queue.Empty):
                return self._happenings.get(timeout=WAIT_S_MAX)
        return self._happenings.get(timeout=timeout_s)

    def _run(self) -> None:
        try:
            for happening in self._source:
                self._happenings.put(happening)
        except Exception as error:
            self._happenings.put(error)


class Message(Struct, frozen=True, kw_only=True):
    data: str
    kind: str = "message"
    id: str = ""


class Parser:
    """Parses server-sent events (WHATWG HTML, 9.2.6) from lines without their line ends."""

    def __init__(self) -> None:
        self.last_id = ""
        """The last id that was received. It applies to later messages that have no id."""
        self.retry_ms: int | None = None
        self._data: list[str] = []
        self._kind = ""

    def feed(self, line: str) -> Message | None:
        """Take one line. Returns the message that it completes, or None."""
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        self._field(name, value.removeprefix(" "))
        return None

    def _field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)

    def _dispatch(self) -> Message | None:
        data, kind = self._data, self._kind
        self._data, self._kind = [], ""
        if not data:
            return None
        return Message(data="\n".join(data), kind=kind or "message", id=self.last_id)


def messages(parser: Parser, lines: Iterator[str]) -> Iterator[Message]:
    """Yield complete messages. One that is cut off is dropped; the server sends it again."""
    for line in lines:
        message = parser.feed(line)
        if message is not None:
            yield message
