"""What all parts of a round share: the servers, the records, the fleet and recent events."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from fairwarning.live_check.fleet import FLEET
from fairwarning.live_check.http import Answer, Connection, NoAnswer
from fairwarning.live_check.nodes import CannotServe, Guard, Node
from fairwarning.live_check.records import NodeChange, Recorder, Request, now

ANSWER_S_MAX = 30.0  # A request may wait for a paused server.
_NOBODY_UP_PAUSE_S = 0.1  # A server is back within a second or two.
_NOBODY_UP_S_MAX = 300.0  # Then the servers will not come back.
_RECENT_MAX = 40  # Some of them have ended, and the servers still know all.


class World:
    def __init__(self, nodes: Sequence[Node], guard: Guard, recorder: Recorder, seed: str) -> None:
        self.nodes = nodes
        self.recorder = recorder
        self.members: dict[str, list[str]] = {each.name: [] for each in FLEET}
        """The known instances of each scope."""
        self.recent: dict[str, deque[str]] = {
            each.name: deque(maxlen=_RECENT_MAX) for each in FLEET
        }
        """The ids of the latest events of each scope, ended or not."""
        self._guard = guard
        self._seed = seed

    def chance(self, who: str) -> random.Random:
        """Returns a generator of random numbers, the same ones for the same seed and name."""
        return random.Random(f"{self._seed} {who}")

    def note(self, change: NodeChange) -> None:
        self.recorder.add(change)
        self._guard.tell()

    async def any_node(self, chance: random.Random) -> Node:
        """Returns a random node that serves. Raises CannotServe if none does for too long."""
        deadline_s = time.monotonic() + _NOBODY_UP_S_MAX
        while not (up := [node for node in self.nodes if node.is_up]):
            if time.monotonic() > deadline_s:
                raise CannotServe("no server came back")
            await asyncio.sleep(_NOBODY_UP_PAUSE_S)
        return chance.choice(up)

    async def ask(self, node: Node, request: Request) -> Request:
        """Sends the request to the operator API, and records and returns it with its answer."""
        method = "GET" if request.what.startswith("read") else "POST"
        headers, body = request_parts(request)
        try:
            answer = await Connection(is_kept=False).ask(
                node.control_url, method, request.path, headers, body, within_s=ANSWER_S_MAX
            )
        except NoAnswer:
            pass
        else:
            request.answered, request.status = now(), answer.status
            request.answer = _json(answer)
        finally:
            # Also after a cancellation, because the server may have carried the request out.
            self.recorder.add(request)
        return request

    async def read(self, node: Node, path: str) -> dict[str, Any] | None:
        """Returns the answer to a GET of the operator API, or None. It is not recorded."""
        headers = {"Accept": "application/json"}
        try:
            answer = await Connection(is_kept=False).ask(
                node.control_url, "GET", f"/api/v1{path}", headers, within_s=ANSWER_S_MAX
            )
        except NoAnswer:
            return None
        return _json(answer) if answer.status == 200 else None

    async def refresh_members(self, scope: str, node: Node) -> None:
        shown = await self.read(node, f"/scopes/{scope}")
        if shown is not None:
            self.members[scope] = [each["name"] for each in shown["instances"]]


def new_request(
    node: Node,
    who: str,
    label: str,
    what: str,
    path: str,
    body: dict[str, Any] | None,
    key: str | None = None,
) -> Request:
    """Returns a request that is about to be sent. Its label is also its `why` in the history."""
    path = f"/api/v1{path}?why={label}"
    return Request(
        who=who, label=label, what=what, node=node.name, path=path, body=body, key=key, sent=now()
    )


def request_parts(request: Request) -> tuple[dict[str, str], bytes]:
    headers = {"Content-Type": "application/json"} if request.body is not None else {}
    if request.key is not None:
        headers["Idempotency-Key"] = request.key
    return headers, b"" if request.body is None else msgspec.json.encode(request.body)


def _json(answer: Answer) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None
