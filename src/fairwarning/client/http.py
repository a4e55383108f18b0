"""HTTP/1.1 of the client: requests to bytes, and bytes to responses.

h11 does the protocol, except for polls of the usual form, which are read faster without it.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

import h11

from fairwarning.client.flow import Request, Response

BODY_BYTES_MAX = 4 * 1024 * 1024
READ_BYTES = 64 * 1024
_OK = 200
_LINE = re.compile(r"\r\n([!#-'*+.0-9A-Z^-z|~-]+):[ \t]*([^\r\n]*)(?=\r\n|\Z)")
"""A header line; names have no other characters (RFC 9110 5.6.2)."""
_PLAIN = re.compile(r"[!-~]+")
"""The characters of a URL; others would be percent-encoded."""
CONNECT_S_MAX = 5.0
"""How long connecting may take. A first poll may take minutes, but its connection does not."""


class Broken(Exception):
    """The connection or the response was cut off, or is no HTTP."""


class TimedOut(Broken):
    """No response came in time. A repetition at once would only double the wait."""


class BadAddress(ValueError):
    """The URL of the service cannot be used; the message says how to write one."""


class Address:
    """The service's URL in parts. It may have a base path, as Fairwarning's `/vm/NAME`."""

    def __init__(self, url: str) -> None:
        """Take the URL apart. Raises BadAddress."""
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

    A poller sends the same request and reads responses of the same form for weeks. So the bytes of
    a request are made once, and a response of the usual form (with a length, whole in one piece) is
    read without h11, which halves the cost of a poll. Anything else goes to h11, from the start.
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
        """Take received bytes, and return the response once it is complete. Raises Broken.

        Empty bytes mean that the service has closed the connection.
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
    """Return the response, if these bytes are exactly one of the usual form."""
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator or not head.startswith(b"HTTP/1.1 200 "):
        return None
    lines = _LINE.findall(head.decode("latin-1"))
    headers = {name.lower(): value.rstrip() for name, value in lines}
    if not len(headers) == len(lines) == head.count(b"\n"):
        # A name comes twice, a line is continued in the next, or one is no header at all.
        return None
    is_plain = "transfer-encoding" not in headers and "connection" not in headers
    if not is_plain or headers.get("content-length") != str(len(body)):
        return None
    return Response(status=_OK, headers=headers, body=body)
