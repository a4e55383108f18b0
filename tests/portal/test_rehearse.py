"""Rehearsals only where nobody's machine goes down for real, and by those who may."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.node import Node, NodeSettings
from fairwarning.operator_api.app import ROUTES
from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.server import Tls
from fairwarning.portal.api import Api
from fairwarning.portal.scenario_runner import BundledScenario, bundled_scenarios
from fairwarning.scenarios.parse import read_scenario
from tests.operator_api.rig import ME, Rig, running
from tests.operator_api.test_auth import make_certificate
from tests.portal.reader import part, reading
from tests.support.http_client import http_client
from tests.support.patience import HANG_S

REAL = NodeSettings(store_url="memory:", makes_starter_fleet=False)


async def ended(rig: Rig) -> str:
    """What the page says of the scenario once it is over."""
    async with (
        asyncio.timeout(HANG_S),
        reading(rig) as reader,
        reader.client.stream("GET", "/stream?rehearsal") as stream,
    ):
        async for line in stream.aiter_lines():
            if line == "event: change":
                run = part(await reader.see("/rehearse"), "run")
                if "run-playing" not in run:
                    return run
    raise AssertionError("the stream ended before the scenario")


async def test_a_server_for_real_machines_says_where_to_rehearse() -> None:
    async with (
        Node(REAL) as node,
        http_client(node.control_url) as client,
    ):
        await node.engine.declare([VirtualMachine(name="db", place=Place())], by=ME)
        page = (await client.get("/rehearse")).text
        assert "--clock virtual" in page
        assert "Play it" not in page


async def test_on_the_real_clock_only_test_fleets_are_played_with() -> None:
    async with running(is_clock_virtual=False) as rig, reading(rig) as reader:
        await rig.node.engine.declare([VirtualMachine(name="real", place=Place())], by=ME)
        await reader.send(
            "/rehearse", "/rehearse/play", scenario="neighbour", **{"role-web-1": "real"}
        )
        assert "real is in no test fleet" in await ended(rig)
        assert (await rig.get("/events"))["events"] == []


_LONG = """
title = "A fault, and then nothing for an hour, if it is played ten times as fast"
[[step]]
fault = { kind = "status", instances = "web-0", status = 500 }
[[step]]
after = "10h"
say = "And then?"
"""
LONG = BundledScenario("long", read_scenario(_LONG), ("web-0",))


async def test_the_faults_of_a_story_that_is_stopped_are_cleared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairwarning.portal.pages.rehearse.find_scenario", lambda _: LONG)
    async with running() as rig, reading(rig) as reader:
        await reader.send("/rehearse", "/rehearse/play", scenario="long", speed="10")
        said = await reader.send("/rehearse", "/rehearse/play", scenario="long", speed="10")
        assert "stop it first" in said
        async with asyncio.timeout(HANG_S), reader.client.stream("GET", "/stream") as stream:
            lines = stream.aiter_lines()
            while not rig.node.faults.list():
                await anext(lines)
        await reader.send("/rehearse", "/rehearse/halt")
        assert "Stopped" in await ended(rig)
        assert (await rig.get("/faults"))["faults"] == []


async def test_a_server_that_stops_does_not_wait_for_a_story(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairwarning.portal.pages.rehearse.find_scenario", lambda _: LONG)
    async with asyncio.timeout(HANG_S):
        async with running() as rig, reading(rig) as reader:
            await reader.send("/rehearse", "/rehearse/play", scenario="long", speed="10")


async def test_a_viewer_looks_and_plays_nothing(tmp_path: Path) -> None:
    certificate, key, _ = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        _, secret = await tokens.create("ada", Role.VIEWER, None, by=ME, why="")
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        async with http_client(url) as client:
            await client.post("/login", data={"token": secret})
            page = (await client.get("/rehearse")).text
            assert "Scenarios" in page
            for button in ("Play it", "Advance", "Set it", "Watch for"):
                assert button not in page
            form_key = re.search(r'name="form_key" value="([0-9a-f]+)"', page)
            assert form_key is not None
            sent = {"form_key": form_key[1], "scenario": "neighbour", "by": "1h", "kind": "empty"}
            before = rig.clock.now()
            for path in ("play", "halt", "clock", "faults", "faults/clear", "watch", "unwatch"):
                await client.post(f"/rehearse/{path}", data=sent)
            assert rig.clock.now() == before
            assert "No scenario has been played yet" in (await client.get("/rehearse")).text
            assert rig.node.faults.list() == []
            assert rig.node.requests.left_s == 0


async def test_a_viewer_stops_no_story_of_another(tmp_path: Path) -> None:
    certificate, key, _ = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        said = {}
        for role, deed in ((Role.OPERATOR, "play"), (Role.VIEWER, "halt")):
            _, secret = await tokens.create(deed, role, None, by=ME, why="")
            async with http_client(url) as client:
                await client.post("/login", data={"token": secret})
                found = re.search(r'name="form_key" value="([0-9a-f]+)"', await page_of(client))
                assert found is not None
                sent = {"form_key": found[1], "scenario": "neighbour", "speed": "10"}
                await client.post(f"/rehearse/{deed}", data=sent)
                note = re.search(r'<p class="said[^"]*">(.*?)</p>', await page_of(client))
                assert note is not None
                said[deed] = note[1]
        assert "begins" in said["play"]
        assert "role" in said["halt"]


async def page_of(client: httpx.AsyncClient) -> str:
    return (await client.get("/rehearse")).text


def test_every_story_of_the_library_can_be_read() -> None:
    assert all(each.instances for each in bundled_scenarios())


@pytest.mark.parametrize(
    ("method", "segments", "path"),
    [
        ("GET", ["events", "E"], "/events/{id}"),
        ("POST", ["events", "E", "approve"], "/events/{id}/approve"),
        ("GET", ["scopes", "s/g/vm/db"], "/scopes/{scope:path}"),
        ("POST", ["clock", "advance"], "/clock/advance"),
    ],
)
def test_what_a_player_asks_is_found(method: str, segments: list[str], path: str) -> None:
    api = Api(None, ROUTES)  # type: ignore[arg-type]
    found, names = api.find(method, segments)
    assert (found, [*names.values()]) == (path, segments[1:2] if "{" in path else [])
