"""Runs a small service on loopback that answers JSON."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, str, bytes], tuple[int, Mapping[str, Any]]]
"""Takes method, target and body; returns the status and the JSON."""


@contextmanager
def json_service(answer: Answer) -> Iterator[str]:
    """Runs the service during the block, which gets its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer))
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def driver_service(
    obey: Callable[[Mapping[str, Any]], str],
) -> AbstractContextManager[str]:
    """Runs the service of a webhook driver; `obey` gets each order and returns its state."""
    return json_service(lambda _, __, body: (200, {"state": obey(json.loads(body))}))


def _handler(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code, said = answer(self.command, self.path, body)
            content = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def do_PATCH(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
