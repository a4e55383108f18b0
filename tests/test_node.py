"""A node starts and stops its parts in the right order, and leaves nothing open behind it."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from fairwarning.core.instants import HOUR_MS, Instant, parse_instant
from fairwarning.core.resources import AvailabilitySet, Member, Place, VirtualMachine
from fairwarning.engine.clocks import VirtualClock
from fairwarning.fleet_file.model import Fleet
from fairwarning.node import Node, NodeSettings
from fairwarning.operator_api import health
from fairwarning.operator_api.idempotency import KIND, Kept
from tests.operator_api.rig import ME, Rig, running
from tests.support.http_client import http_client
from tests.support.patience import HANG_S
from tools.postgres import url_of

WEB = AvailabilitySet(
    name="web",
    members=tuple(Member(name=f"web-{n}") for n in range(2)),
    place=Place(origin="file"),
)
SOLO = VirtualMachine(name="solo", place=Place(origin="file"))


def settings_for(tmp_path: Path, **more: Any) -> NodeSettings:
    chosen = {"is_clock_virtual": True, "makes_starter_fleet": False, **more}
    return NodeSettings(store_url=f"sqlite:///{tmp_path}/fw.db", **chosen)


async def scope_names(node: Node) -> list[str]:
    return [
        scope.roster.resource
        for scope in await node.store.scopes(limit=100)
        if not scope.roster.is_gone
    ]


async def test_a_start_that_is_cancelled_leaves_the_store_and_the_addresses_free(
    tmp_path: Path,
) -> None:
    """Somebody pressed Ctrl-C while a slow store was being read."""
    node = Node(settings_for(tmp_path))
    reached = asyncio.Event()

    async def never() -> None:
        reached.set()
        await asyncio.get_running_loop().create_future()

    node.engine.start = never  # type: ignore[method-assign]
    starting = asyncio.create_task(node.start())
    await reached.wait()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    _, _, port = node.control_url.rpartition(":")
    async with Node(settings_for(tmp_path, control=("127.0.0.1", int(port)))) as another:
        assert another.control_url == node.control_url


async def test_a_start_with_a_fleet_removes_what_the_file_no_longer_has(tmp_path: Path) -> None:
    async with Node(settings_for(tmp_path, fleet=Fleet(resources=(WEB, SOLO)))) as node:
        assert await scope_names(node) == ["web", "solo"]
    async with Node(settings_for(tmp_path, fleet=Fleet(resources=(WEB,)))) as node:
        assert await scope_names(node) == ["web"]


async def test_only_an_empty_store_gets_the_starter_fleet(tmp_path: Path) -> None:
    async with Node(settings_for(tmp_path, fleet=Fleet(resources=(SOLO,)))) as node:
        assert not node.has_starter_fleet
    async with Node(settings_for(tmp_path, makes_starter_fleet=True)) as node:
        assert not node.has_starter_fleet
        assert await scope_names(node) == ["solo"]


async def test_an_event_whose_window_has_closed_is_withdrawn_before_the_fleet_is_declared(
    tmp_path: Path,
) -> None:
    """Each declaration also starts what is due in its scope. Nobody must be rebooted by day."""
    evening = parse_instant("2026-11-16T22:00:00Z")
    assert evening is not None
    fleet = Fleet(resources=(WEB,))
    async with Node(settings_for(tmp_path, clock_start=evening, fleet=fleet)) as node:
        rig = await rig_of(node)
        await rig.activate("web-0")
        window = {"from": "22:00", "to": "23:00"}
        wanted = {"type": "Reboot", "windows": [window]}
        await rig.post("/rollouts", wanted, 201)
        await rig.clock.settle()
        (event,) = (await rig.get("/events"))["events"]
        await rig.api.aclose()
    morning = Instant(evening + 12 * HOUR_MS)
    tagged = AvailabilitySet(name=WEB.name, members=WEB.members, tags={"a": "b"}, place=WEB.place)
    again = Fleet(resources=(tagged,))
    async with Node(settings_for(tmp_path, clock_start=morning, fleet=again)) as node:
        rig = await rig_of(node)
        assert (await rig.get(f"/events/{event['id']}"))["phase"] == "cancelled"
        await rig.api.aclose()


async def rig_of(node: Node) -> Rig:
    assert isinstance(node.clock, VirtualClock)
    return Rig(node, http_client(f"{node.control_url}/api/v1"))


async def test_a_folder_that_can_hold_no_certificate_costs_only_the_optional_listener(
    tmp_path: Path,
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    folder = in_the_way / "tls"
    async with running(azure=("127.0.0.1", 0), azure_folder=folder, is_azure_optional=True) as rig:
        assert rig.node.azure_url == ""
        assert str(in_the_way) in rig.node.azure_trouble
        await rig.get("/events")


async def test_a_node_removes_the_keys_of_requests_that_are_long_over() -> None:
    node = Node(NodeSettings(store_url="memory:", makes_starter_fleet=False))
    old = Kept(asked="x", seed="y", began_ms=Instant(0))
    body = msgspec.json.encode(old).decode()
    await node.store.keep(KIND, "old", body, by=ME)
    async with node, asyncio.timeout(HANG_S):
        while await node.store.record(KIND, "old") is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_the_time_that_a_commit_takes_is_measured_in_seconds() -> None:
    async with running() as rig:
        taken: list[float] = []
        rig.node.engine.observe(lambda _receipt, _by, _why, took_s: taken.append(took_s))
        await rig.activate("web-0")
        await rig.schedule("web-0")
        async with http_client(rig.node.control_url) as client:
            text = (await client.get("/metrics")).text
    shown = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    name = "fairwarning_store_transaction_seconds"
    assert int(float(shown[f"{name}_count"])) == len(taken) > 0
    # Ours is told later, so it has seen a little more time pass at each commit.
    assert 0 < float(shown[f"{name}_sum"]) <= sum(taken)


async def test_every_change_of_an_event_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fairwarning.transitions"):
        async with running() as rig:
            event = await rig.schedule("web-0")
    assert event["id"] in caplog.text or "Reboot of web-0 announced for" in caplog.text


async def test_a_node_that_its_store_has_outgrown_answers_polls_and_changes_nothing(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "WRITE_EVERY_S", 0.0)
    settings = NodeSettings(store_url=url_of(postgres_dsn), fleet=Fleet(resources=(SOLO,)))
    async with Node(settings) as node, http_client() as client:
        events = f"{node.metadata_urls[0]}/vm/solo/metadata/scheduledevents?api-version=2020-07-01"
        asked = {"Metadata": "true"}
        assert (await client.get(events, headers=asked)).status_code == 200
        reboot = {"type": "Reboot", "targets": ["solo"]}
        made = await client.post(f"{node.control_url}/api/v1/events", json=reboot)
        assert made.status_code == 201
        (seen,) = (await client.get(events, headers=asked)).json()["Events"]
        assert (await client.get(f"{node.control_url}/readyz")).status_code == 200

        async with await psycopg.AsyncConnection.connect(postgres_dsn) as contract:
            await contract.execute(b"UPDATE schema_floor SET version = version + 1000")

        approval = {"StartRequests": [{"EventId": seen["EventId"]}]}
        approved = await client.post(events, headers=asked, json=approval)
        assert approved.status_code == 503
        assert "older version than its store needs; ask another node" in approved.json()["error"]
        refused = await client.post(f"{node.control_url}/api/v1/events", json=reboot)
        ready = await client.get(f"{node.control_url}/readyz")
        for answer in (refused, ready):
            assert (answer.status_code, answer.json()["code"]) == (503, "node-outdated")
        polled = await client.get(events, headers=asked)
        assert polled.json()["Events"] == [seen]
