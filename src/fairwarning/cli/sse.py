"""Server-sent events (WHATWG HTML, 9.2.6): from lines to messages. Pure."""

from collections.abc import Iterator

from msgspec import Struct


class Message(Struct, frozen=True, kw_only=True):
    data: str
    kind: str = "message"
    id: str = ""


class Parser:
    """Fed one line at a time, without its end."""

    def __init__(self) -> None:
        self.last_id = ""
        """Where to resume; it outlives the message that brought it."""
        self.retry_ms: int | None = None
        self._data: list[str] = []
        self._kind = ""

    def feed(self, line: str) -> Message | None:
        """A message when this line completes one."""
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
    """A message that the end of the stream cut off is dropped: it will come again."""
    for line in lines:
        message = parser.feed(line)
        if message is not None:
            yield message
