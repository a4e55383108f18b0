"""Bytes to requests, with a limit on everything that a sender can make grow.

llhttp (through httptools) does the parsing; this collects what it finds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import httptools

from fairwarning.metadata.answers import BODY_TOO_LARGE, HEAD_TOO_LARGE, MALFORMED, Answer
from fairwarning.metadata.asks import Head
from fairwarning.metadata.limits import BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX

_MESSAGE_BYTES_MAX = HEAD_BYTES_MAX + 8 * BODY_BYTES_MAX
"""Chunks of a byte each make a body several times as long on the wire."""
_UPGRADE_WORDS = frozenset({"upgrade", "http2-settings"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    head: Head
    body: bytes
    keeps_alive: bool


class Refusal(Exception):
    """The sender broke a rule of HTTP or a limit; the answer closes the connection."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class Reader:
    """For the requests of one connection; thrown away whenever it is between two."""

    __slots__ = ("_body", "_done", "_head_bytes", "_headers", "_in_body", "_on_continue",
                 "_parser", "_pending_bytes", "_url", "is_between", "was_upgrade")  # fmt: skip

    def __init__(self, on_continue: Callable[[], None]) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._on_continue = on_continue
        self._done: list[Received] = []
        self.is_between = True
        self.was_upgrade = False
        """Whether any request asked for another protocol, which we do not speak."""
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._body = b""
        self._head_bytes = 0
        self._pending_bytes = 0
        self._in_body = False

    def feed(self, data: bytes) -> tuple[list[Received], Answer | None]:
        """The requests that this completes, in order, and the refusal of what follows them."""
        self._done = []
        try:
            self._feed(data)
            self._refuse_endless(len(data))
        except Refusal as refusal:
            return self._done, refusal.answer
        return self._done, None

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            raise (cause if isinstance(cause, Refusal) else Refusal(MALFORMED)) from None
        except httptools.HttpParserError:
            raise Refusal(MALFORMED) from None

    def _ignore_upgrade(self, rest: bytes) -> None:
        """RFC 9110 7.8: a server may ignore it. llhttp would skip the body, so start again.

        Java's client offers HTTP/2 like this with every request, approvals included.
        """
        self.was_upgrade = True
        received = self._done.pop()
        if received.head.method == "CONNECT":
            self._done.append(replace(received, keeps_alive=False))
            return
        version = self._parser.get_http_version()
        self._parser = httptools.HttpRequestParser(self)
        self._feed(_without_upgrade(received.head, version) + rest)

    def _refuse_endless(self, count: int) -> None:
        """What llhttp has taken in and not told us of yet is limited too."""
        if self.is_between:
            return
        self._pending_bytes += count
        if not self._in_body and self._pending_bytes > HEAD_BYTES_MAX + BODY_BYTES_MAX:
            raise Refusal(HEAD_TOO_LARGE)
        if self._pending_bytes > _MESSAGE_BYTES_MAX:
            raise Refusal(BODY_TOO_LARGE)

    def on_message_begin(self) -> None:
        self.is_between = False
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._grow_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            # A trailer. None is of use to us, and none may stand in for a header.
            return
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))
        self._grow_head(len(name) + len(value))
        if len(self._headers) > HEADERS_MAX:
            raise Refusal(HEAD_TOO_LARGE)

    def _grow_head(self, count: int) -> None:
        self._head_bytes += count
        if self._head_bytes > HEAD_BYTES_MAX:
            raise Refusal(HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._in_body = True
        headers = dict(self._headers)
        is_new = self._parser.get_http_version() == "1.1"
        if is_new and sum(name == "host" for name, _ in self._headers) != 1:
            # RFC 9112 3.2: two of them are how requests are smuggled past a proxy.
            raise Refusal(MALFORMED)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > BODY_BYTES_MAX:
            raise Refusal(BODY_TOO_LARGE)
        has_body = length.strip("0") or "transfer-encoding" in headers
        expects = headers.get("expect", "").lower() == "100-continue"
        if expects and has_body and is_new:
            self._on_continue()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > BODY_BYTES_MAX:
            raise Refusal(BODY_TOO_LARGE)

    def on_message_complete(self) -> None:
        self.is_between = True
        head = Head(
            method=self._parser.get_method().decode("latin-1"),
            target=self._url.decode("latin-1"),
            headers=tuple(self._headers),
        )
        keeps_alive = self._parser.should_keep_alive()
        self._done.append(Received(head=head, body=self._body, keeps_alive=keeps_alive))
        self._begin()


def _without_upgrade(head: Head, version: str) -> bytes:
    lines = [f"{head.method} {head.target} HTTP/{version}"]
    for name, value in head.headers:
        if name == "connection":
            words = [word.strip() for word in value.split(",")]
            kept = ", ".join(word for word in words if word.lower() not in _UPGRADE_WORDS)
            lines.append(f"{name}: {kept or 'keep-alive'}")
        elif name != "upgrade":
            lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
