"""A server that answers as it was told and remembers what it was asked.

For what the real server does only by accident: broken connections, strange answers, streams
that end in the middle. Everything else is tested against the real one.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

NOW = "2026-11-16T12:00:00.000Z"


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    status: int = 200
    body: Any = field(default_factory=dict)
    media_type: str = "application/json"
    breaks: bool = False
    """Close the connection instead of answering."""


@dataclass
class Fake:
    url: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def on(self, what: str, *answers: Answer | dict[str, Any]) -> None:
        """`GET /events`; the last answer is repeated."""
        made = [each if isinstance(each, Answer) else Answer(body=each) for each in answers]
        self.answers[what] = made

    def of(self, what: str) -> list[Asked]:
        return [each for each in self.asked if f"{each.method} {each.path}" == what]

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        queue = self.answers.get(f"{asked.method} {asked.path}")
        if queue is None:
            return problem(404, "unknown-thing", f"no {asked.path}; see what there is")
        return queue.pop(0) if len(queue) > 1 else queue[0]


def problem(status: int, code: str, detail: str, **more: Any) -> Answer:
    body = {"status": status, "code": code, "detail": detail, "title": code, **more}
    return Answer(status, body, "application/problem+json")


@contextmanager
def fake_server(tls: ssl.SSLContext | None = None) -> Iterator[Fake]:
    fake = Fake()
    fake.on("GET /clock", {"now": NOW, "virtual": True})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            asked = Asked(
                self.command,
                unquote(parts.path.removeprefix("/api/v1")),
                parse_qs(parts.query),
                {name.lower(): value for name, value in self.headers.items()},
                self.rfile.read(length),
            )
            answer = fake.answer(asked)
            if answer.breaks:
                self.close_connection = True
                return
            content = answer.body
            if not isinstance(content, bytes):
                content = json.dumps(content).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.media_type)
            if answer.media_type == "text/event-stream":
                self.send_header("Connection", "close")
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do  # noqa: N815  names of the standard library

        def handle(self) -> None:
            with suppress(ssl.SSLError, ConnectionError):
                super().handle()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    scheme = "http" if tls is None else "https"
    fake.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
