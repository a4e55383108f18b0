"""`fairwarning serve` on a PostgreSQL that is away at the start, falls silent, or comes back."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import httpx
import pytest

from tests.stores.nodes import wait_for
from tests.support.http_client import http_client
from tests.support.patience import HANG_S
from tests.support.postgres import PostgresServer, store_url
from tests.support.processes import clean_environment
from tests.support.tcp_proxy import proxied

POLL = "/vm/db/metadata/scheduledevents?api-version=2020-07-01"
INSTANCE = "/vm/db/metadata/instance?api-version=2021-02-01"
HEADERS = {"Metadata": "true", "X-Fairwarning-Age": "true"}


@dataclass
class Started:
    process: Process
    log: Path
    control: str

    async def ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(HANG_S):
            line = await self.process.stdout.readline()
        assert line, self.log.read_text()
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    async def until_logged(self, text: str) -> None:
        await wait_for(lambda: text in self.log.read_text())


@contextmanager
def port_and_log(log: Path) -> Iterator[tuple[int, TextIO]]:
    """A port that nobody else gets by chance, because it stays bound here without listening."""
    with socket.socket() as kept, open(log, "a") as errors:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1], errors


@asynccontextmanager
async def serving(folder: Path, url: str, *options: str) -> AsyncIterator[Started]:
    log = folder / "log"
    with port_and_log(log) as (port, errors):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fairwarning", "serve", "--json", "--no-azure", "--store", url,
            "--metadata", "127.0.0.1:0", "--control", f"127.0.0.1:{port}", *options,
            stdout=PIPE, stderr=errors, env=clean_environment(),
        )  # fmt: skip
        try:
            yield Started(process, log, f"http://127.0.0.1:{port}")
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


async def get(url: str) -> httpx.Response:
    async with http_client() as client:
        return await client.get(url, headers=HEADERS)


async def approve(url: str, *ids: str) -> httpx.Response:
    body = {"StartRequests": [{"EventId": id} for id in ids]}
    async with http_client() as client:
        return await client.post(url + POLL, json=body, headers=HEADERS)


@pytest.mark.parametrize("workers", ["0", "1"])
async def test_a_server_that_starts_without_its_database_waits_for_it(
    postgres_dsn: str, tmp_path: Path, workers: str
) -> None:
    async with proxied(postgres_dsn) as (proxy, url):
        await proxy.cut()
        async with serving(tmp_path, url, "--workers", workers) as server:
            await server.until_logged("waiting for the store before the start: cannot work with")
            health = await get(f"{server.control}/healthz")
            assert (health.status_code, health.text) == (200, "ok\n")
            for path in ("/readyz", "/api/v1/events", "/metrics"):
                answer = await get(f"{server.control}{path}")
                assert (answer.status_code, answer.json()["code"]) == (503, "waiting-for-store")
                assert answer.headers["retry-after"] == "1"
            assert server.log.read_text().count("waiting for the store") == 1
            await proxy.open()
            (metadata,) = (await server.ready())["metadata"]
            assert (await get(metadata + POLL)).status_code == 200
            assert (await get(f"{server.control}/readyz")).text == "ready\n"
            await server.until_logged("so the start goes on")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_server_that_waits_for_its_database_can_be_stopped(
    postgres_dsn: str, tmp_path: Path, number: signal.Signals
) -> None:
    async with proxied(postgres_dsn) as (proxy, url):
        await proxy.cut()
        async with serving(tmp_path, url) as server:
            await server.until_logged("waiting for the store")
            os.kill(server.process.pid, number)
            assert await server.process.wait() == 0
            assert "Traceback" not in server.log.read_text()


async def test_a_database_that_does_not_exist_is_not_waited_for(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    async with serving(tmp_path, store_url(postgres_server.dsn("nowhere"))) as server:
        assert await server.process.wait() == 1
        (line,) = server.log.read_text().splitlines()
        assert "nowhere" in line
        assert "waiting" not in line


@pytest.mark.parametrize("workers", ["0", "1"])
async def test_a_silent_database_is_given_up_and_polls_go_on_until_they_are_too_old(
    postgres_dsn: str, tmp_path: Path, workers: str
) -> None:
    options = ("--workers", workers, "--store-timeout", "1s", "--stale-max", "15s")
    async with proxied(postgres_dsn) as (proxy, url), serving(tmp_path, url, *options) as server:
        (metadata,) = (await server.ready())["metadata"]
        body = {"type": "Reboot", "targets": ["db"]}
        async with http_client() as client:
            event = (await client.post(f"{server.control}/api/v1/events", json=body)).json()["id"]

        async def is_shown() -> bool:
            return event in (await get(metadata + POLL)).text

        await wait_for(is_shown)
        before = await get(metadata + INSTANCE)
        proxy.fall_silent()
        answer = await approve(metadata, event)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        shown = await get(metadata + POLL)
        assert (shown.status_code, event in shown.text) == (200, True)
        assert (await get(metadata + INSTANCE)).json() == before.json()

        async def is_stale() -> bool:
            found = await get(metadata + POLL)
            return int(found.headers.get("x-fairwarning-age", 99)) >= 10

        await wait_for(is_stale)
        await server.until_logged("the store cannot be reached; instances get the documents of")

        async def is_refused() -> bool:
            return (await get(metadata + POLL)).status_code == 503

        await wait_for(is_refused)
        figures = (await get(f"{server.control}/metrics")).text
        (age,) = [
            line.split()[1]
            for line in figures.splitlines()
            if line.startswith("fairwarning_documents_age_seconds ")
        ]
        assert float(age) >= 10
        proxy.speak()
        await server.until_logged("the documents are up to date again")

        async def is_approved() -> bool:
            return (await approve(metadata, event)).status_code == 200

        await wait_for(is_approved)
        found = (await get(f"{server.control}/api/v1/events/{event}")).json()
        assert found["phase"] in ("started", "completed")


async def test_an_operator_does_not_wait_for_a_database_that_hangs(
    postgres_dsn: str, tmp_path: Path
) -> None:
    """The database's machine acknowledges what is sent, so the kernel gives up no connection."""
    async with (
        proxied(postgres_dsn) as (proxy, url),
        serving(tmp_path, url, "--store-timeout", "1s") as server,
    ):
        await server.ready()
        events = f"{server.control}/api/v1/events"
        proxy.fall_silent()
        async with http_client() as client:
            for answer in (
                await client.get(events),
                await client.post(events, json={"type": "Reboot", "targets": ["db"]}),
            ):
                assert (answer.status_code, answer.json()["code"]) == (503, "store-down")
        said = "a request met an outage: the store has not answered within 1 s"
        await wait_for(lambda: server.log.read_text().count(said) == 2)
        proxy.speak()

        async def is_back() -> bool:
            return (await get(events)).status_code == 200

        await wait_for(is_back)


async def test_what_became_due_while_the_database_was_away_is_started_late_and_said_to_be(
    postgres_dsn: str, tmp_path: Path
) -> None:
    async with proxied(postgres_dsn) as (proxy, url), serving(tmp_path, url) as server:
        await server.ready()
        body = {"type": "Reboot", "targets": ["db"], "notice": "1s"}
        async with http_client() as client:
            event = (await client.post(f"{server.control}/api/v1/events", json=body)).json()
        await proxy.cut()
        due_s = datetime.fromisoformat(event["notBefore"]).timestamp()
        await wait_for(lambda: time.time() > due_s + 2)
        await proxy.open()

        async def is_started() -> bool:
            answer = await get(f"{server.control}/api/v1/events/{event['id']}")
            return answer.status_code == 200 and answer.json()["phase"] != "scheduled"

        await wait_for(is_started)
        await server.until_logged(" s late (its time had come)")
        figures = (await get(f"{server.control}/metrics")).text
        assert 'fairwarning_late_starts_total{type="Reboot"} 1.0' in figures
        timeline = (await get(f"{server.control}/api/v1/history?limit=50")).text
        assert " s late (its time had come)" in timeline
