"""Makes responses with Azure's headers and error bodies, and turns them into bytes.

If a live capture or a page of Azure shows the words of an error, we use exactly these words. All
other errors have the same form (`{"error": …}`), which no client mistakes for a document.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from operator import length_hint

SERVER = "IMDS/150.870.65.1854"
JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response before it becomes bytes."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False
    """Whether the connection must be closed, because later bytes on it can't be trusted."""


def error(status: int, text: str, *, closes: bool = False, **headers: str) -> Response:
    """Return an error in Azure's form. In the names of `headers`, `_` becomes `-`."""
    body = json.dumps({"error": text}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=status, body=body, headers=named, closes=closes)


NO_METADATA_HEADER = Response(
    status=400, body=b'{ "error": "Bad request: . Required metadata header not specified" }'
)
FOREIGN = error(
    403,
    "Forbidden. On loopback only localhost and IP addresses are answered to, and no web page is; "
    "write http://127.0.0.1 and the port",
)
FORWARDED = error(400, "Bad request. X-Forwarded-For header is not allowed")
DUPLICATE_PARAMETER = error(400, "Bad request. Duplicate query parameters are not allowed")
BAD_QUERY = error(400, "Bad request. The query string is malformed")
NOT_FOUND = error(404, "Not found")
LEAF_NEEDS_TEXT = error(
    400, "Bad request. A leaf node has no JSON form; ask for it with format=text"
)
BAD_FORMAT = error(400, "Bad request. format must be json or text")
BAD_WAIT = error(400, "Bad request. wait must be a whole number of seconds, 0 to 300")
BAD_BODY = error(
    400,
    'Bad request. The body must be JSON like {"StartRequests":[{"EventId":"<id>"}]}, with 1 to '
    "100 ids",
)
NO_EVENT_ID = error(400, "Bad request. Name the event: ?EventId=<id>")
BAD_DRAINED_BODY = error(400, 'Bad request. The body must be JSON like {"EventId":"<id>"}')
TOO_MANY_REQUESTS = error(429, "Too many requests", Retry_After="1")
MALFORMED = error(400, "Bad request. Malformed HTTP request", closes=True)
HEAD_TOO_LARGE = error(431, "Request header fields too large", closes=True)
BODY_TOO_LARGE = error(413, "Request entity too large", closes=True)
OUT_OF_SERVICE = error(503, "Service unavailable. Try again in a moment", Retry_After="1")
OUTDATED = error(
    503,
    "Service unavailable. This node runs an older version than its store needs; ask another node",
    Retry_After="5",
)
OUT_OF_DATE = error(
    503,
    "Service unavailable. The store cannot be reached, and what is known is too old",
    Retry_After="5",
)
BROKEN = error(500, "Internal server error", closes=True)


def bad_version(status: int, newest: Sequence[str]) -> Response:
    """Return the error for an unknown api-version. Azure names the three newest, newest first."""
    return _version_error(
        status,
        "Bad request. api-version is invalid or was not specified in the request. "
        "For more information refer to aka.ms/azureimds",
        newest,
    )


def latest_version(status: int, known: Sequence[str]) -> Response:
    """Return the error for the api-version `latest`, which Azure has withdrawn."""
    newest_first = sorted(known, reverse=True)
    names = ", ".join(newest_first)
    text = f"Bad request. api-version latest is no longer supported; use one of {names}"
    return _version_error(status, text, newest_first[:3])


def _version_error(status: int, text: str, newest: Sequence[str]) -> Response:
    body = json.dumps({"error": text, "newest-versions": list(newest)}, separators=(",", ":"))
    return Response(status=status, body=body.encode())


AGE_HEADER = "X-Fairwarning-Age"


def with_age(ready: bytes, age_s: float) -> bytes:
    """Return the response with a header that says how many seconds old its content may be."""
    return ready.replace(b"\r\n", b"\r\n%s: %d\r\n" % (AGE_HEADER.encode(), age_s), 1)


def method_not_allowed(*allowed: str) -> Response:
    return error(405, "Method not allowed", Allow=", ".join(allowed))


def head(
    status: int,
    length: int,
    content_type: str = JSON,
    headers: Mapping[str, str] | None = None,
    *,
    closes: bool,
) -> bytes:
    """Return the status line and all header lines except the varying ones. A response is this head,
    the varying headers, an empty line and the body.
    """
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, '')}"]
    if status != HTTPStatus.NOT_MODIFIED:
        lines.append(f"Content-Length: {length}")
    if length:
        lines.append(f"Content-Type: {content_type}")
    lines.append(f"Server: {SERVER}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if closes:
        lines.append("Connection: close")
    return "\r\n".join([*lines, ""]).encode("latin-1")


_LAST_BYTES = tuple(b"%02x" % number for number in range(256))


class VaryingHeaders:
    """Makes the two headers that are different in each response: the date and the request id.

    To format them each time, or only to read the clock, took a tenth of the time of a known poll.
    So everything except the id's last byte is made once for up to 256 responses (a block). A timer
    ends the block when the second is over. An object belongs to one event loop.
    """

    def __init__(self, seconds: Callable[[], float] | None = None) -> None:
        """Use the clock `seconds` instead of the system's. It is then read for every response."""
        self._seconds = seconds or time.time
        self._is_steady = seconds is None
        seed = os.urandom(10).hex()
        prefix = f"{seed[:8]}-{seed[8:12]}-4{seed[13:16]}-8{seed[17:20]}-"
        self._prefix = b"\r\nx-ms-request-id: " + prefix.encode()
        self._timer: asyncio.TimerHandle | None = None
        self._number = -1
        self._used = 0
        """How many ids all earlier blocks have given out."""
        self._size = 0
        self.block = b""
        self.lasts = iter(_LAST_BYTES[:0])
        """The last bytes of the ids that are left in the block. If none is left, call `begin`."""

    @property
    def count(self) -> int:
        """The number of responses since the start. Each response takes one id."""
        return self._used + self._size - length_hint(self.lasts)

    def next(self) -> bytes:
        """Return both headers of the next response."""
        last = next(self.lasts, None) or self.begin()
        return self.block + last

    def begin(self) -> bytes:
        """Begin a new block of up to 256 ids, and return the last byte of its first id."""
        self._end()
        self._number += 1
        now_s = self._seconds()
        date = formatdate(int(now_s), usegmt=True).encode()
        self.block = b"Date: " + date + self._prefix + b"%010x" % self._number
        self._size = len(_LAST_BYTES) if self._is_steady else 1
        self.lasts = iter(_LAST_BYTES[: self._size])
        if self._is_steady and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(1 - now_s % 1, self._end_second)
        return next(self.lasts)

    def _end_second(self) -> None:
        self._timer = None
        self._end()

    def _end(self) -> None:
        self._used, self._size = self.count, 0
        self.lasts = iter(_LAST_BYTES[:0])


def to_bytes(
    response: Response, varying: VaryingHeaders, *, closes: bool, has_body: bool = True
) -> bytes:
    start = head(
        response.status,
        len(response.body),
        response.content_type,
        response.headers,
        closes=closes or response.closes,
    )
    return b"".join((start, varying.next(), b"\r\n\r\n", response.body if has_body else b""))
