"""The parser turns bytes into requests, and limits everything that a sender can make grow.

The bytes of a client are kept until it is the connection's turn. Then llhttp (through httptools)
gets one piece of them, which has at most 4 KiB and never goes beyond the end of a request. A head
and a chunked body both end with an empty line, and other bodies have a length, so the end is found
without parsing.
"""

from collections.abc import Callable

import httptools
from msgspec import Struct
from msgspec.structs import replace

from fairwarning.metadata import settings
from fairwarning.metadata.requests import Head
from fairwarning.metadata.responses import BODY_TOO_LARGE, HEAD_TOO_LARGE, MALFORMED, Response

_MESSAGE_BYTES_MAX = settings.HEAD_BYTES_MAX + 8 * settings.BODY_BYTES_MAX
"""The most bytes of a request. If each chunk has one byte, a body takes many times its size."""
_UPGRADE_WORDS = frozenset({"upgrade", "http2-settings"})
_EMPTY_LINE = b"\r\n\r\n"


class ReceivedRequest(Struct, frozen=True, kw_only=True):
    """One whole request, whose meaning is not known yet."""

    head: Head
    body: bytes
    keeps_alive: bool
    raw: bytes | None = None
    """The bytes of a request that came alone and in one piece, so that they can be remembered."""


class Refusal(Exception):
    """The sender broke a rule of HTTP or a limit. The response closes the connection."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class RequestParser:
    """Parses the requests of one connection. The connection drops it when `is_empty` is true."""

    __slots__ = ("_at", "_body", "_body_left", "_data", "_found", "_head_bytes", "_headers",
                 "_in_body", "_is_between", "_on_continue", "_parser", "_pending_bytes", "_tail",
                 "_url")  # fmt: skip

    def __init__(self, on_continue: Callable[[], None]) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._on_continue = on_continue
        self._data = b""
        self._at = 0
        """How many bytes of `_data` were given to llhttp."""
        self._tail = b""
        """The last bytes given to llhttp. They are kept as an empty line may come in two pieces."""
        self._found: ReceivedRequest | None = None
        self._is_between = True
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()
        self._body_left = 0
        """How many bytes are left of a body with `Content-Length`."""
        self._head_bytes = 0
        self._pending_bytes = 0
        self._in_body = False

    @property
    def waiting(self) -> int:
        """How many bytes were not given to llhttp yet."""
        return len(self._data) - self._at

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a request is left, neither parsed nor waiting."""
        return self._is_between and self._at == len(self._data)

    def add(self, data: bytes) -> None:
        """Keep these bytes for `take`."""
        self._data = self._data[self._at :] + data if self.waiting else data
        self._at = 0

    def take(self) -> ReceivedRequest | None:
        """Parse the next piece. Return the request if the piece completes one, else None. Raises
        Refusal if the bytes break a rule of HTTP or a limit.
        """
        was_between, start = self._is_between, self._at
        piece = self._next_piece()
        self._at += len(piece)
        is_upgrade = self._feed(piece)
        self._refuse_endless(len(piece))
        found, self._found = self._found, None
        if found is None:
            return None
        is_alone = was_between and start == 0 and self._at == len(self._data)
        return replace(found, raw=piece) if is_alone and not is_upgrade else found

    def _next_piece(self) -> bytes:
        size = settings.CHUNKED_PIECE_BYTES_MAX if self._in_body else settings.PIECE_BYTES_MAX
        if self._body_left:
            size = min(settings.PIECE_BYTES_MAX, self._body_left)
        piece = self._data[self._at : self._at + size]
        if self._body_left:
            self._body_left -= len(piece)
            return piece
        seen = self._tail + piece
        end = seen.find(_EMPTY_LINE)
        if end < 0:
            self._tail = seen[1 - len(_EMPTY_LINE) :]
            return piece
        piece, self._tail = piece[: end + len(_EMPTY_LINE) - len(self._tail)], b""
        return piece

    def _feed(self, piece: bytes) -> bool:
        """Give llhttp a piece. Return whether the request asked for an upgrade. Raises Refusal."""
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._ignore_upgrade()
            return True
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            raise (cause if isinstance(cause, Refusal) else Refusal(MALFORMED)) from None
        except httptools.HttpParserError:
            raise Refusal(MALFORMED) from None
        return False

    def _ignore_upgrade(self) -> None:
        """Parse the head again without its upgrade, because llhttp would skip the body.

        RFC 9110 7.8 lets a server ignore an upgrade. Java's client asks for HTTP/2 in this way with
        every request, even with an approval. The piece ended with the head, so nothing else has to
        be parsed again.
        """
        found, self._found = self._found, None
        assert found is not None
        if found.head.method == "CONNECT":
            self._found = replace(found, keeps_alive=False)
            return
        version = self._parser.get_http_version()
        self._parser = httptools.HttpRequestParser(self)
        self._feed(_without_upgrade(found.head, version))

    def _refuse_endless(self, count: int) -> None:
        """Count bytes that llhttp may not have reported. Raises Refusal if there are too many."""
        if self._is_between:
            return
        self._pending_bytes += count
        if (
            not self._in_body
            and self._pending_bytes > settings.HEAD_BYTES_MAX + settings.BODY_BYTES_MAX
        ):
            raise Refusal(HEAD_TOO_LARGE)
        if self._pending_bytes > _MESSAGE_BYTES_MAX:
            raise Refusal(BODY_TOO_LARGE)

    def on_message_begin(self) -> None:
        self._is_between = False
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._grow_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            # This is a trailer. We need none, and it must not be used as a header.
            return
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))
        self._grow_head(len(name) + len(value))
        if len(self._headers) > settings.HEADERS_MAX:
            raise Refusal(HEAD_TOO_LARGE)

    def _grow_head(self, count: int) -> None:
        self._head_bytes += count
        if self._head_bytes > settings.HEAD_BYTES_MAX:
            raise Refusal(HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._in_body = True
        headers = dict(self._headers)
        is_new = self._parser.get_http_version() == "1.1"
        if is_new and sum(name == "host" for name, _ in self._headers) != 1:
            # RFC 9112 3.2 demands this. With two hosts, a request can be smuggled past a proxy.
            raise Refusal(MALFORMED)
        if self._parser.should_upgrade():
            # There is no body yet; see `_ignore_upgrade`.
            return
        # llhttp has checked that this is a number.
        self._body_left = int(headers.get("content-length", "0"))
        if self._body_left > settings.BODY_BYTES_MAX:
            raise Refusal(BODY_TOO_LARGE)
        has_body = self._body_left or "transfer-encoding" in headers
        expects = headers.get("expect", "").lower() == "100-continue"
        if expects and has_body and is_new:
            self._on_continue()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > settings.BODY_BYTES_MAX:
            raise Refusal(BODY_TOO_LARGE)

    def on_message_complete(self) -> None:
        self._is_between = True
        headers: dict[str, list[str]] = {}
        for name, value in self._headers:
            headers.setdefault(name, []).append(value)
        head = Head(
            method=self._parser.get_method().decode("latin-1"),
            target=self._url.decode("latin-1"),
            headers=headers,
        )
        keeps_alive = self._parser.should_keep_alive()
        self._found = ReceivedRequest(head=head, body=bytes(self._body), keeps_alive=keeps_alive)
        self._begin()


def _without_upgrade(head: Head, version: str) -> bytes:
    lines = [f"{head.method} {head.target} HTTP/{version}"]
    for name, values in head.headers.items():
        if name == "connection":
            words = [word.strip() for value in values for word in value.split(",")]
            kept = ", ".join(word for word in words if word.lower() not in _UPGRADE_WORDS)
            lines.append(f"{name}: {kept or 'keep-alive'}")
        elif name != "upgrade":
            lines += [f"{name}: {value}" for value in values]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
