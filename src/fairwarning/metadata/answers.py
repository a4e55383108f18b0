"""Answers as bytes: Azure's headers, and the bodies of its errors.

Where a live capture or a page of Azure shows the words, they are repeated exactly; the
others are in the same form (`{"error": …}`), which no client can take for a document.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from fairwarning.metadata.stamp import Stamp

SERVER = "IMDS/150.870.65.1854"
JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False
    """Close the connection behind it: what follows on it cannot be trusted."""


def error(status: int, text: str, *, closes: bool = False, **headers: str) -> Answer:
    body = json.dumps({"error": text}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=body, headers=named, closes=closes)


NO_METADATA_HEADER = Answer(
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
BROKEN = error(500, "Internal server error", closes=True)


def bad_version(status: int, newest: Sequence[str]) -> Answer:
    """Azure names the three newest, newest first."""
    return _version_error(
        status,
        "Bad request. api-version is invalid or was not specified in the request. "
        "For more information refer to aka.ms/azureimds",
        newest,
    )


def latest_version(status: int, known: Sequence[str]) -> Answer:
    newest_first = sorted(known, reverse=True)
    text = "Bad request. api-version latest is no longer supported; use one of " + ", ".join(
        newest_first
    )
    return _version_error(status, text, newest_first[:3])


def _version_error(status: int, text: str, newest: Sequence[str]) -> Answer:
    body = json.dumps({"error": text, "newest-versions": list(newest)}, separators=(",", ":"))
    return Answer(status=status, body=body.encode())


def method_not_allowed(*allowed: str) -> Answer:
    return error(405, "Method not allowed", Allow=", ".join(allowed))


def head(
    status: int,
    length: int,
    content_type: str = JSON,
    headers: Mapping[str, str] | None = None,
    *,
    closes: bool,
) -> bytes:
    """Everything before the stamp. An answer is `head + stamp + CRLF CRLF + body`."""
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


def to_bytes(answer: Answer, stamp: Stamp, *, closes: bool, has_body: bool = True) -> bytes:
    start = head(
        answer.status,
        len(answer.body),
        answer.content_type,
        answer.headers,
        closes=closes or answer.closes,
    )
    return b"".join((start, stamp.next(), b"\r\n\r\n", answer.body if has_body else b""))
