"""Nodes with different roles on one PostgreSQL: who shows, who starts, and who can be asked."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest

from fairwarning.core.commands import Schedule
from fairwarning.core.instants import SECOND_MS
from fairwarning.core.journal_text import sentence
from fairwarning.core.model import EventType, InstanceName, Phase
from fairwarning.core.transitions import HandedOver, Started
from fairwarning.engine import change_feed, engine_presence, timers
from fairwarning.engine.active_faults import NoFaultsHere
from fairwarning.engine.node_roles import NodeRole, NodeRoles, RolesNeedPostgres
from fairwarning.node import Node, NodeSettings
from fairwarning.starter_fleet import STARTER_FLEET
from tests.engine.harness import ME
from tests.stores.nodes import wait_for
from tests.support.http_client import http_client
from tests.support.postgres import store_url

METADATA, ENGINE, CONTROL = (frozenset({each}) for each in NodeRole)
NAME = InstanceName("db")
POLL = f"/vm/{NAME}/metadata/scheduledevents?api-version=2020-07-01"
NEVER_MS = 10**9


@asynccontextmanager
async def cluster(dsn: str, *roles: NodeRoles) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        nodes = []
        for each in roles:
            settings = NodeSettings(store_url=store_url(dsn), roles=each)
            nodes.append(await stack.enter_async_context(Node(settings)))
        yield nodes


async def get(url: str, path: str) -> httpx.Response:
    async with http_client() as client:
        return await client.get(url + path, headers={"Metadata": "true"})


async def schedule(node: Node, name: str = NAME, notice_ms: int | None = None) -> Schedule:
    (member,) = node.engine.views.by_name(name)
    targets, scope = (member.name,), member.view.scope_id
    command = Schedule(
        event_id=node.engine.new_id(),
        type=EventType.REBOOT,
        targets=targets,
        notice_ms=notice_ms,
        lasts_s=0,
    )
    await node.engine.submit(scope, command, by=ME)
    return command


async def test_an_approval_at_a_metadata_node_is_carried_out_by_the_engine_node(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a signal can wake the engine in this test, so it does cross the nodes."""
    monkeypatch.setattr(timers, "RECHECK_MS", NEVER_MS)
    monkeypatch.setattr(change_feed, "RECHECK_S", NEVER_MS)
    async with cluster(postgres_dsn, ENGINE, METADATA, CONTROL) as (engine, metadata, control):
        (url,) = metadata.metadata_urls
        await wait_for(control.engine.views.ids)
        command = await schedule(control)

        async def is_shown() -> bool:
            return command.event_id in (await get(url, POLL)).text

        await wait_for(is_shown)
        body = json.dumps({"StartRequests": [{"EventId": command.event_id}]})
        async with http_client() as client:
            answer = await client.post(url + POLL, content=body, headers={"Metadata": "true"})
        assert answer.status_code == 200

        async def is_done() -> bool:
            _, event = await control.store.find_event(command.event_id)
            return event.phase is Phase.COMPLETED

        await wait_for(is_done)
        entries = await control.store.history(event_id=command.event_id, limit=100)
        (handed,) = [each.transition for each in entries if isinstance(each.transition, HandedOver)]
        assert handed.node == engine.engine._node


async def test_a_node_without_the_role_has_no_endpoint_and_no_portal(postgres_dsn: str) -> None:
    async with cluster(postgres_dsn, ENGINE, METADATA, CONTROL) as (engine, metadata, control):
        assert [len(each.metadata_urls) for each in (engine, metadata, control)] == [0, 1, 0]
        for node in (engine, metadata):
            assert (await get(node.control_url, "/healthz")).status_code == 200
            assert (await get(node.control_url, "/readyz")).text == "ready\n"
            assert "fairwarning_store_up 1" in (await get(node.control_url, "/metrics")).text
            for path in ("/", "/api/v1/events", "/api/v1/openapi.json"):
                answer = await get(node.control_url, path)
                assert (answer.status_code, answer.json()["code"]) == (404, "no-control-role")
                assert "--role control" in answer.json()["detail"]
        assert (await get(control.control_url, "/api/v1/events")).status_code == 200
        with pytest.raises(NoFaultsHere, match="--role"):
            control.faults.set(None)  # type: ignore[arg-type]


async def test_only_an_engine_node_makes_the_starter_fleet(postgres_dsn: str) -> None:
    async with cluster(postgres_dsn, METADATA, CONTROL) as (metadata, control):
        assert await control.store.scope_ids(limit=1) == []
        assert not metadata.has_starter_fleet
        async with cluster(postgres_dsn, ENGINE) as (engine,):
            assert engine.has_starter_fleet
            assert len(await control.store.scope_ids(limit=100)) == len(STARTER_FLEET)


async def test_without_an_engine_nothing_starts_and_the_nodes_say_so(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine_presence, "BEAT_S", 0.01)
    monkeypatch.setattr(engine_presence, "SILENT_S", 0.5)
    async with cluster(postgres_dsn, METADATA) as (metadata,):

        async def is_said() -> bool:
            return (
                "no node with the role engine" in (await get(metadata.control_url, "/readyz")).text
            )

        await wait_for(is_said)
        assert "no node with the role engine is running" in caplog.text
        figures = (await get(metadata.control_url, "/metrics")).text
        assert "fairwarning_engine_running 0" in figures
        async with cluster(postgres_dsn, ENGINE):
            await wait_for(lambda: "role engine is running again" in caplog.text)
            assert (await get(metadata.control_url, "/readyz")).text == "ready\n"


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/fw.db"])
def test_other_stores_need_all_roles(url: str, tmp_path: object) -> None:
    with pytest.raises(RolesNeedPostgres, match="PostgreSQL"):
        Node(NodeSettings(store_url=url.format(tmp_path), roles=METADATA))


async def test_what_became_due_without_an_engine_is_started_late_and_in_order(
    postgres_dsn: str,
) -> None:
    async with cluster(postgres_dsn, ENGINE, CONTROL) as (engine, control):
        await wait_for(lambda: control.engine.views.by_name("web-1"))
        await engine.stop()
        first = await schedule(control, "web-0", notice_ms=SECOND_MS)
        second = await schedule(control, "web-1", notice_ms=1)

        events = [(await control.store.find_event(each.event_id))[1] for each in (first, second)]
        in_order = sorted(events, key=lambda each: each.not_before_ms)

        async def are_late() -> bool:
            return (await control.store.due(1)).now_ms > in_order[1].not_before_ms + 2 * SECOND_MS

        await wait_for(are_late)
        async with cluster(postgres_dsn, ENGINE):

            async def are_done() -> bool:
                events = [await control.store.find_event(each.event_id) for each in (first, second)]
                return all(event.phase is Phase.COMPLETED for _, event in events)

            await wait_for(are_done)
        found = [
            each.transition
            for each in await control.store.journal(limit=1_000)
            if isinstance(each.transition, Started)
        ]
        # The second one waits for the end of the first, which is of another update domain.
        assert [each.event_id for each in found] == [each.id for each in in_order]
        assert found[0].late_ms > 2 * SECOND_MS
        assert " s late (its time had come)" in sentence(found[0])
