"""HTTP/1.1 as bytes, for one connection at a time; h11 does the protocol."""

from urllib.parse import urlsplit

import h11

from fairwarning.client.flow import Request, Response

BODY_BYTES_MAX = 4 * 1024 * 1024
READ_BYTES = 64 * 1024
CONNECT_S_MAX = 5.0
"""Whoever is there answers at once; a first poll may take minutes, but not to be connected."""


class Broken(Exception):
    """The connection or the answer was cut off or made no sense."""


class TimedOut(Broken):
    """No answer came in time; asking again at once would double the silence."""


class Address:
    """Where the service listens; the base may have a path, as Fairwarning's `/vm/NAME` has."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a metadata service; it begins with http://")
        self.host = parts.hostname
        self.port = parts.port or 80
        self.base = parts.path.rstrip("/")
        self.authority = parts.netloc
        self.url = f"http://{parts.netloc}{self.base}"


class Exchange:
    """One request and its answer."""

    def __init__(self, address: Address, request: Request) -> None:
        self._connection = h11.Connection(our_role=h11.CLIENT)
        self._body: list[bytes] = []
        self._size = 0
        self._head: h11.Response | None = None
        headers = [("Host", address.authority), ("User-Agent", "fairwarning")]
        headers += list(request.headers.items())
        if request.body:
            headers.append(("Content-Length", str(len(request.body))))
        head = h11.Request(method=request.method, target=address.base + request.target,
                           headers=headers)  # fmt: skip
        parts = [self._connection.send(head)]
        if request.body:
            parts.append(self._connection.send(h11.Data(data=request.body)))
        parts.append(self._connection.send(h11.EndOfMessage()))
        self.to_send = b"".join(part for part in parts if part)
        self.keeps_alive = False

    def feed(self, data: bytes) -> Response | None:
        """Empty data means that the other side has closed. Raises Broken."""
        try:
            self._connection.receive_data(data)
            return self._next()
        except h11.RemoteProtocolError as problem:
            raise Broken(f"the answer is no HTTP ({problem})") from None

    def _next(self) -> Response | None:
        while True:
            event = self._connection.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                self._head = event
            elif isinstance(event, h11.Data):
                self._take(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return self._whole()
            elif isinstance(event, h11.ConnectionClosed):
                raise Broken("the connection was closed before the answer")

    def _take(self, data: bytes) -> None:
        self._body.append(data)
        self._size += len(data)
        if self._size > BODY_BYTES_MAX:
            raise Broken("the answer is larger than any document")

    def _whole(self) -> Response:
        assert self._head is not None
        has_more, _ = self._connection.trailing_data
        self.keeps_alive = self._connection.our_state is h11.DONE and not has_more
        headers = {name.decode().lower(): value.decode("latin-1")
                   for name, value in self._head.headers}  # fmt: skip
        return Response(status=self._head.status_code, headers=headers, body=b"".join(self._body))
