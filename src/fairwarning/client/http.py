"""Turns the client's requests into bytes of HTTP/1.1, and received bytes into responses.

The library h11 does this, except for responses of the usual form, which we read faster without it.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

import h11

from fairwarning.client.polling import Request, Response

BODY_BYTES_MAX = 4 * 1024 * 1024  # Far more than a document of 100 events.
READ_BYTES = 64 * 1024  # A usual document arrives in one read.
_OK = 200
_LINE = re.compile(r"\r\n([!#-'*+.0-9A-Z^-z|~-]+):[ \t]*([^\r\n]*)(?=\r\n|\Z)")
"""A header line. The pattern has the characters that RFC 9110 5.6.2 allows in a name."""
_PLAIN = re.compile(r"[!-~]+")
"""The characters that a URL may have. All others must be percent-encoded."""
CONNECT_S_MAX = 5.0
"""How long connecting may take. It is short even for the first poll, which may take minutes."""


class Broken(Exception):
    """No valid response: connecting failed, the connection was cut off, or it was not HTTP."""


class TimedOut(Broken):
    """No response came in time. The connection does not repeat such a request by itself."""


class BadAddress(ValueError):
    """The URL of the service cannot be used. The message shows how to write one."""


class Address:
    """The parts of the service's URL. It may have a base path, such as Fairwarning's `/vm/NAME`."""

    def __init__(self, url: str) -> None:
        """Split the URL. Raises BadAddress if it is no http:// URL with a host."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or 80
            host.encode("idna")  # As the resolver will, which refuses long names.
        except ValueError:
            host = ""
        if not host or parts.scheme != "http" or not _PLAIN.fullmatch(url):
            raise BadAddress(
                f"{url[:100]!r} is no address of a metadata service; it begins with http:// and a "
                "host, such as http://169.254.169.254"
            )
        self.host = host
        self.port = port
        self.base = parts.path.rstrip("/")
        self.authority = parts.netloc
        self.url = f"http://{parts.netloc}{self.base}"


class Exchange:
    """One request and its response.

    A poller sends the same request and gets responses of the same form for weeks. So the bytes of a
    request are cached. A 200 with a length that arrives in one piece is read without h11, which
    halves the cost of a poll. h11 reads all other responses, from their first byte.
    """

    def __init__(self, address: Address, request: Request) -> None:
        self._request_parts = (address.authority, address.base + request.target, request.method,
                       tuple(request.headers.items()), request.body)  # fmt: skip
        self.to_send = _to_send(*self._request_parts)
        self._connection: h11.Connection | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._head: h11.Response | None = None
        self.keeps_alive = False

    def feed(self, data: bytes) -> Response | None:
        """Process received bytes. Return the response once it is complete, and None before.

        Pass empty bytes when the service has closed the connection. Raises Broken if the bytes are
        not HTTP, if the response is too large, or if the connection ended too early.
        """
        if self._connection is None:
            usual = _read_usual(data)
            if usual is not None:
                self.keeps_alive = True
                return usual
            self._connection, _ = _start_request(*self._request_parts)
        try:
            self._connection.receive_data(data)
            return self._next(self._connection)
        except h11.RemoteProtocolError as problem:
            raise Broken(f"the answer is no HTTP ({problem})") from None

    def _next(self, connection: h11.Connection) -> Response | None:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                self._head = event
            elif isinstance(event, h11.Data):
                self._take(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return self._whole(connection)
            elif isinstance(event, h11.ConnectionClosed):
                raise Broken("the connection was closed before the answer")

    def _take(self, data: bytes) -> None:
        self._body.append(data)
        self._size += len(data)
        if self._size > BODY_BYTES_MAX:
            raise Broken("the answer is larger than any document")

    def _whole(self, connection: h11.Connection) -> Response:
        assert self._head is not None
        has_more, _ = connection.trailing_data
        self.keeps_alive = connection.our_state is h11.DONE and not has_more
        headers = {name.decode().lower(): value.decode("latin-1")
                   for name, value in self._head.headers}  # fmt: skip
        return Response(status=self._head.status_code, headers=headers, body=b"".join(self._body))


def _start_request(
    authority: str, target: str, method: str, headers: tuple[tuple[str, str], ...], body: bytes
) -> tuple[h11.Connection, bytes]:
    """Return an h11 connection that has sent the request, and the bytes that it sent."""
    connection = h11.Connection(our_role=h11.CLIENT)
    sent = [("Host", authority), ("User-Agent", "fairwarning"), *headers]
    if body:
        sent.append(("Content-Length", str(len(body))))
    parts = [connection.send(h11.Request(method=method, target=target, headers=sent))]
    if body:
        parts.append(connection.send(h11.Data(data=body)))
    parts.append(connection.send(h11.EndOfMessage()))
    return connection, b"".join(part for part in parts if part)


@lru_cache(maxsize=8)
def _to_send(
    authority: str, target: str, method: str, headers: tuple[tuple[str, str], ...], body: bytes
) -> bytes:
    return _start_request(authority, target, method, headers, body)[1]


def _read_usual(data: bytes) -> Response | None:
    """Return the response if the bytes are exactly one response of the usual form, else None."""
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator or not head.startswith(b"HTTP/1.1 200 "):
        return None
    lines = _LINE.findall(head.decode("latin-1"))
    headers = {name.lower(): value.rstrip() for name, value in lines}
    if not len(headers) == len(lines) == head.count(b"\n"):
        # A name comes twice, a header continues on the next line, or a line is no header.
        return None
    is_plain = "transfer-encoding" not in headers and "connection" not in headers
    if not is_plain or headers.get("content-length") != str(len(body)):
        return None
    return Response(status=_OK, headers=headers, body=body)
