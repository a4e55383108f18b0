"""Programs and services that keep the rules of a driver, for `command` and `webhook`."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/drivers.md"
VIRSH = """#!/bin/sh
# A stand-in for virsh that knows the domains vm-1 and vm-2, and notes what it is told.
[ ! -e away ] || { echo "cannot connect" >&2; exit 1; }
case $2 in vm-1|vm-2) ;; *) echo "failed to get domain '$2'" >&2; exit 1 ;; esac
echo "$1 $2" >> told
"""
COUNT = """#!/bin/sh
grep -c "^suspend $1$" told || true
"""


def write_programs(folder: Path) -> None:
    """Writes the script of the docs as `impact`, and `count` and `virsh` beside it."""
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for name, text in (("impact", script), ("virsh", VIRSH), ("count", COUNT)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "told").touch()


@dataclass
class ImpactService:
    """A web service that keeps the rules of the docs, and freezes for a second."""

    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    frozen: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, order: dict[str, Any]) -> dict[str, str]:
        with self.lock:
            key = self.keys.setdefault(order["key"], {"attempt": 0, "state": "unknown"})
            if order["attempt"] < key["attempt"] and order["action"] == "do":
                return {"state": "failed", "reason": "a higher attempt was seen"}
            key["attempt"] = max(key["attempt"], order["attempt"])
            if order["action"] == "find" or key["state"] in {"running", "done"}:
                return {"state": key["state"]}
            handles = [each["handle"] for each in order["instances"]]
            if not {"vm-1"}.issuperset(handles):
                return {"state": "failed", "reason": "there is no such instance"}
            self.frozen += handles
            key["state"] = "running"
            timer = threading.Timer(order["durationSeconds"], self.end, [key])
            timer.daemon = True
            timer.start()
            return {"state": "running"}

    def end(self, key: dict[str, Any]) -> None:
        with self.lock:
            key["state"] = "done"


@contextmanager
def impact_service(folder: Path) -> Iterator[str]:
    """Yields the URL of a web service. It is away while the folder has a file `away`."""
    its = ImpactService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            order = json.loads(self.rfile.read(int(self.headers["content-length"])))
            is_away = (folder / "away").exists()
            self._send(503 if is_away else 200, b"" if is_away else _json(its.answer(order)))

        def do_GET(self) -> None:
            self._send(200, str(its.frozen.count(self.path.strip("/"))).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
