"""`fairwarning serve --role` as processes on one PostgreSQL."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_serve_outages import POLL, approve, get, serving
from tests.stores.nodes import wait_for
from tests.support.http_client import http_client
from tests.support.patience import HANG_S
from tests.support.postgres import store_url


@pytest.mark.parametrize("workers", ["0", "2"])
async def test_three_servers_divide_the_roles(
    postgres_dsn: str, tmp_path: Path, workers: str
) -> None:
    url, folders = store_url(postgres_dsn), [tmp_path / name for name in "emc"]
    patient = ("--store-timeout", "1m")  # No call may fail because this machine is slow.
    for folder in folders:
        folder.mkdir()
    async with (
        serving(folders[0], url, *patient, "--role", "engine") as engine,
        serving(folders[1], url, *patient, "--role", "metadata", "--workers", workers) as metadata,
        serving(folders[2], url, *patient, "--role", "control") as control,
    ):
        assert (await engine.ready())["metadata"] == []
        (polled,) = (await metadata.ready())["metadata"]
        assert (await control.ready())["metadata"] == []
        body = {"type": "Reboot", "targets": ["db"], "duration": "1s"}
        ids: list[str] = []

        async def is_known() -> bool:
            """The fleet of the engine's server may be on its way to the others."""
            async with http_client() as client:
                answer = await client.post(f"{control.control}/api/v1/events", json=body)
            if answer.status_code == 201:
                ids.append(answer.json()["id"])
            return bool(ids)

        async def is_shown() -> bool:
            return ids[0] in (await get(polled + POLL)).text

        async def is_over() -> bool:
            found = (await get(f"{control.control}/api/v1/events/{ids[0]}")).json()
            return bool(found["phase"] == "completed")

        await wait_for(is_known)
        await wait_for(is_shown)
        assert (await approve(polled, ids[0])).status_code == 200
        await wait_for(is_over)
        assert "handed to the driver" in engine.log.read_text()
        assert "handed to the driver" not in metadata.log.read_text() + control.log.read_text()
        answer = await get(f"{metadata.control}/api/v1/events")
        assert (answer.status_code, answer.json()["code"]) == (404, "no-control-role")


def test_a_server_alone_on_its_store_needs_all_roles(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairwarning", "serve", "--role", "metadata"]
    done = subprocess.run(
        [*command, "--store", f"sqlite:///{tmp_path}/fw.db"],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "only nodes that share a PostgreSQL can divide the roles" in line
