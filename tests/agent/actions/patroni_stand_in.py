"""A REST API that answers as Patroni does; the words were recorded from Patroni 3.0.2 and 4.1.5."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

AFTER_OLD = ("stopping", "stopped", "starting", "running")
AFTER = ("stopping", "starting", "running", "streaming")


class PatroniStandIn:
    """The cluster `demo` with the members `a`, which is the local one and the leader, and `b`."""

    def __init__(self) -> None:
        self.url = ""
        self.leader: str | None = "a"
        self.timeline = 1
        self.states = {"a": "running", "b": "streaming"}
        self.timelines = {"a": 1, "b": 1}
        self.followed_by: tuple[str, ...] = AFTER
        """The states that a member goes through when it is demoted, one at each look."""
        self.credentials = ""
        """`user:password`; nobody has to say any if it is empty."""
        self.is_paused = False
        self.refusal: tuple[int, str] | None = None
        """What a switchover is answered with instead of being done."""
        self.is_answer_lost = False
        """Whether the next switchover is done and the connection is closed without an answer."""
        self.asked: list[str] = []
        self.headers: dict[str, str] = {}
        self._demoted = ""
        self._coming: list[str] = []

    @property
    def switchovers(self) -> list[str]:
        return [each for each in self.asked if each.startswith("POST")]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str] | None:
        if method == "GET":
            self.asked.append(f"GET {path}")
            if path == "/leader":
                return (200 if self.leader == "a" else 503), "{}"
            return 200, json.dumps(self._cluster())
        self.asked.append(f"POST {path} {body.decode()}")
        return self._switch(json.loads(body))

    def _switch(self, wanted: dict[str, str]) -> tuple[int, str] | None:
        given = self.headers.get("Authorization", "").removeprefix("Basic ")
        if self.credentials and not given:
            return 401, "no auth header received"
        if self.credentials and base64.b64decode(given).decode() != self.credentials:
            return 401, "not authenticated"
        if not wanted["leader"]:
            return 400, "Switchover could be performed only from a specific leader"
        if self.is_paused and "candidate" not in wanted:
            return 400, "Switchover is possible only to a specific candidate in a paused state"
        if self.refusal is not None:
            return self.refusal
        if wanted["leader"] != self.leader:
            return 412, "leader name does not match"
        new = wanted.get("candidate") or next(each for each in self.states if each != self.leader)
        if new not in self.states:
            return 412, "candidate does not exists"
        self.move_to(new)
        if self.is_answer_lost:
            self.is_answer_lost = False
            return None
        return 200, f'Successfully switched over to "{new}"'

    def move_to(self, new: str) -> None:
        self._demoted = self.leader or ""
        self._coming = [*self.followed_by]
        self.leader = new
        self.timeline += 1
        self.states[new] = "running"
        self.timelines[new] = self.timeline

    def _cluster(self) -> dict[str, Any]:
        if self._coming:
            state = self._coming.pop(0)
            self.states[self._demoted] = state
            if not self._coming:
                self.timelines[self._demoted] = self.timeline
        members = [
            {
                "name": name,
                "role": "leader" if name == self.leader else "replica",
                "state": state,
                "timeline": self.timelines[name],
            }
            for name, state in self.states.items()
        ]
        return {"members": members, "scope": "demo"} | ({"pause": True} if self.is_paused else {})


@contextmanager
def patroni(tls: ssl.SSLContext | None = None) -> Iterator[PatroniStandIn]:
    stand_in = PatroniStandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            stand_in.headers = dict(self.headers)
            answer = stand_in.answer(self.command, self.path, body)
            if answer is None:
                return
            self.send_response(answer[0])
            self.end_headers()
            self.wfile.write(answer[1].encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever, args=[0.01])
    serving.start()
    host = "localhost" if tls else "127.0.0.1"
    stand_in.url = f"http{'s' if tls else ''}://{host}:{server.server_address[1]}"
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
