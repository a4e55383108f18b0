"""Two whole servers on one PostgreSQL: keys and locks, and a server that is paused beyond them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from fairwarning.operator_api import record_leases
from tests.operator_api.rig import Block, Rig, running
from tests.stores.nodes import wait_for

BODY = {"type": "Reboot", "targets": ["web-0"]}
NAMED = {"Idempotency-Key": "a"}


@asynccontextmanager
async def servers(dsn: str) -> AsyncIterator[tuple[Rig, Rig]]:
    parts = dict(pair.split("=") for pair in dsn.split())
    url = f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"
    settings: dict[str, Any] = {"store_url": url, "is_clock_virtual": False}
    async with running(**settings) as one, running(**settings) as two:
        yield one, two


async def until_free(rig: Rig, path: str, body: object, code: str) -> httpx.Response:
    """Asks until the lease of the paused one is over."""
    answers: list[httpx.Response] = []

    async def is_free() -> bool:
        answers.append(await rig.api.post(path, json=body, headers=NAMED))
        return answers[-1].status_code != 409 or answers[-1].json()["code"] != code

    await wait_for(is_free)
    return answers[-1]


async def test_a_key_holds_on_both(postgres_dsn: str) -> None:
    async with servers(postgres_dsn) as (one, two):
        first = await one.api.post("/events", json=BODY, headers=NAMED)
        again = await two.api.post("/events", json=BODY, headers=NAMED)
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.content == first.content
        together = await asyncio.gather(
            *(
                rig.api.post(f"/events/{first.json()['id']}/postpone", json={"notice": "2h"},
                             headers={"Idempotency-Key": "b"})
                for rig in (one, two) * 4
            )
        )  # fmt: skip
        assert {each.status_code for each in together} <= {201, 409}
        assert len((await two.get("/events"))["events"]) == 2


@pytest.mark.parametrize("call", ["transact", "history", "find_event"])
async def test_a_server_that_is_paused_beyond_its_key_does_it_no_more(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Before its change, after it, and after it when its answer is made."""
    async with servers(postgres_dsn) as (one, two):
        monkeypatch.setattr(record_leases, "LEASE_MS", 100)
        block = Block(monkeypatch, one.node.store, call)
        paused = asyncio.create_task(one.api.post("/events", json=BODY, headers=NAMED))
        await block.reached.wait()
        retry = await until_free(two, "/events", BODY, "idempotency-in-progress")
        assert retry.status_code == 201
        third = await two.api.post("/events", json=BODY, headers=NAMED)
        block.open()
        late = await paused
        assert (late.status_code, third.status_code) == (201, 201)
        assert late.content == third.content == retry.content
        assert len((await two.get("/events"))["events"]) == 1
        assert (await one.api.post("/events", json=BODY, headers=NAMED)).content == late.content


async def test_a_server_that_is_paused_beyond_its_lock_changes_nothing_more(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with servers(postgres_dsn) as (one, two):
        monkeypatch.setattr(record_leases, "LEASE_MS", 100)
        block = Block(monkeypatch, one.node.store, "transact")
        paused = asyncio.create_task(
            one.api.post("/scopes/workers/scale", json={"capacity": 9}, headers=NAMED)
        )
        await block.reached.wait()
        monkeypatch.setitem(NAMED, "Idempotency-Key", "b")
        other = await until_free(two, "/scopes/workers/scale", {"capacity": 5}, "resource-busy")
        assert other.status_code == 202
        block.open()
        assert (await paused).json()["code"] == "lock-lost"
        assert (await two.get("/scopes/workers"))["capacity"] == 5
