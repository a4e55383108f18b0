"""Bytes to requests, with a limit on everything that a sender can make grow.

llhttp (through httptools) does the parsing; this collects what it finds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import httptools

from fairwarning.metadata.answers import BODY_TOO_LARGE, HEAD_TOO_LARGE, MALFORMED, Answer
from fairwarning.metadata.asks import Head
from fairwarning.metadata.limits import BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX


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
                 "_parser", "_url", "is_between", "is_upgrade")  # fmt: skip

    def __init__(self, on_continue: Callable[[], None]) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._on_continue = on_continue
        self._done: list[Received] = []
        self.is_between = True
        self.is_upgrade = False
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._body = b""
        self._head_bytes = 0
        self._in_body = False

    def feed(self, data: bytes) -> list[Received]:
        """The requests that this completes, in order. Raises Refusal."""
        self._done = []
        self._count_head(len(data))
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # We speak nothing else: answer what was asked, and nothing that follows.
            self.is_upgrade = True
            if not self._done:
                self._finish(keeps_alive=False)
        except Refusal:
            raise
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            raise (cause if isinstance(cause, Refusal) else Refusal(MALFORMED)) from None
        except httptools.HttpParserError:
            raise Refusal(MALFORMED) from None
        return self._done

    def _count_head(self, count: int) -> None:
        if not self._in_body:
            self._head_bytes += count
            if self._head_bytes > HEAD_BYTES_MAX + BODY_BYTES_MAX:
                raise Refusal(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        self.is_between = False
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._grow(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))
        self._grow(len(name) + len(value or b""))
        if len(self._headers) > HEADERS_MAX:
            raise Refusal(HEAD_TOO_LARGE)

    def _grow(self, count: int) -> None:
        self._head_bytes += count
        if self._head_bytes > HEAD_BYTES_MAX:
            raise Refusal(HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._in_body = True
        for name, value in self._headers:
            if name == "content-length" and value.isdigit() and int(value) > BODY_BYTES_MAX:
                raise Refusal(BODY_TOO_LARGE)
            if name == "expect" and value.lower() == "100-continue":
                self._on_continue()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > BODY_BYTES_MAX:
            raise Refusal(BODY_TOO_LARGE)

    def on_message_complete(self) -> None:
        self._finish(keeps_alive=self._parser.should_keep_alive())

    def _finish(self, *, keeps_alive: bool) -> None:
        self.is_between = True
        method = self._parser.get_method().decode("latin-1")
        head = Head(
            method=method,
            target=self._url.decode("latin-1"),
            headers=tuple(self._headers),
        )
        self._done.append(Received(head=head, body=self._body, keeps_alive=keeps_alive))
        self._begin()
