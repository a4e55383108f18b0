"""The OpenAPI document is true: a fuzzer that reads it finds no fault and no surprise."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairwarning.notifications.model import Outcome
from fairwarning.notifications.sender import NetworkSender
from fairwarning.operator_api.app import ROUTES
from fairwarning.operator_api.openapi import document
from tests.operator_api.rig import Rig, running
from tests.support.patience import HANG_S

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,negative_data_rejection,"
    "missing_required_header,unsupported_method"
)


async def test_the_document_is_served_and_names_every_operation(rig: Rig) -> None:
    served = await rig.get("/openapi.json")
    assert served["openapi"].startswith("3.1")
    count = sum(len(path) for path in served["paths"].values())
    assert count == len(ROUTES) + 1  # and the stream


def test_every_operation_has_a_name_of_its_own() -> None:
    paths = document(ROUTES)["paths"]
    names = [each["operationId"] for path in paths.values() for each in path.values()]
    assert len(set(names)) == len(names)


async def test_a_fuzzer_finds_no_fault_and_no_undocumented_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unsent(*_: object) -> Outcome:
        return Outcome(error="whatever address a fuzzer made up, nobody is to be called there")

    monkeypatch.setattr(NetworkSender, "send", unsent)
    async with running() as rig:
        described = await rig.get("/openapi.json")
        path = tmp_path / "openapi.json"
        path.write_text(json.dumps(without_keys(described)))
        found = await fuzz(path, rig.node.control_url)
    assert found.returncode == 0, found.stdout


def without_keys(described: dict[str, Any]) -> dict[str, Any]:
    """A fuzzer sends the same few keys with ever other bodies, and would get no further."""
    for path in described["paths"].values():
        for operation in path.values():
            operation["parameters"] = [
                each for each in operation["parameters"] if each["name"] != "Idempotency-Key"
            ]
    return described


async def fuzz(path: Path, url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "schemathesis.cli", "run", str(path), "--url", url,
               "--checks", CHECKS, "--max-examples", "8", "--seed", "1", "--no-color",
               "--exclude-path", "/api/v1/stream",  # It does not end.
               "--request-timeout", str(HANG_S), "--report-dir", str(path.parent)]  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *command, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return subprocess.CompletedProcess(command, process.returncode, said.decode())
