"""A request whose work is cancelled: by the server that stops, or by whoever asked."""

import asyncio
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from fairwarning.engine.clocks import VirtualClock
from fairwarning.operator_api import server
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.dispatch import Dispatch
from fairwarning.operator_api.metrics import Metrics
from fairwarning.operator_api.route import Route
from fairwarning.operator_api.schemas import Done
from tests.notifications.rig import SharedStore
from tests.operator_api.rig import Block, running
from tests.operator_api.two_nodes import node


@pytest.mark.parametrize("is_stopping", [False, True])
async def test_only_a_server_that_stops_answers_for_what_was_cancelled(is_stopping: bool) -> None:
    is_at_work = asyncio.Event()

    async def wait(_: Any, __: Any) -> Done:
        is_at_work.set()
        await asyncio.Event().wait()
        raise AssertionError

    route = Route(method="GET", path="/x", summary="", role=Role.VIEWER, handle=wait, answer=Done)
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": "/x",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "server": ("localhost", 80),
    }
    dispatch = Dispatch(node(SharedStore(VirtualClock())), Metrics(dict), needs_token=False)
    asked = asyncio.create_task(dispatch.run(route, Request(scope)))
    await is_at_work.wait()
    if is_stopping:
        dispatch.stopping.set()
    asked.cancel()
    if is_stopping:
        answer = await asked
        assert answer.status_code == 503
        assert msgspec.json.decode(answer.body)["code"] == "stopping"
        assert answer.headers["retry-after"] == "5"
    else:
        with pytest.raises(asyncio.CancelledError):
            await asked


async def test_whoever_is_still_waiting_when_the_server_stops_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "STOP_S_MAX", 0)
    async with running() as rig:
        block = Block(monkeypatch, rig.node.store, "events")
        asked = asyncio.create_task(rig.get("/events", 503))
        await block.reached.wait()
        await rig.node.stop()
        assert (await asked)["code"] == "stopping"
