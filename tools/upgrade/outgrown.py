"""Pauses a node, raises the floor of its database meanwhile, and checks what it does afterwards."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import psycopg

from fairwarning.stores.migrations import Migration, WouldHarmNodes, load_migrations
from fairwarning.stores.postgres.database import conninfo_of
from fairwarning.stores.postgres.schema import migrate
from tests.support.postgres import PostgresServer
from tools.postgres import url_of

_READY_S_MAX = 120  # It only ends a hang; the machine may be busy.
_EVENTS = "/vm/solo/metadata/scheduledevents?api-version=2020-07-01"
_FLEET = '[[vm]]\nname = "solo"\n'


def check_outgrown_node(server: PostgresServer) -> bool:
    """Returns whether a node that was paused during a contract writes nothing, and still serves."""
    dsn = server.dsn(server.create_database())
    command = [
        sys.executable, "-m", "fairwarning", "serve", "--store", url_of(dsn), "--json", "--empty",
        "--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0", "--no-azure",
    ]  # fmt: skip
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as node:
        try:
            assert node.stdout is not None
            ready = json.loads(node.stdout.readline())
            findings = _findings(node, dsn, ready["metadata"][0] + _EVENTS, ready["control"])
        finally:
            node.send_signal(signal.SIGCONT)
            node.terminate()
            _, log = node.communicate(timeout=_READY_S_MAX)
    if b"this node no longer writes" not in log:
        findings.append("the log does not say that the node no longer writes")
    for finding in findings:
        print(f"upgrade: a node that its store has outgrown: {finding}")
    if not findings:
        print("a node that was paused during a contract changed nothing, and answered polls")
    return not findings


def _findings(node: "subprocess.Popen[bytes]", dsn: str, events: str, control: str) -> list[str]:
    _ask("PUT", f"{control}/api/v1/fleet", _FLEET, "application/toml")
    _ask("GET", events)
    _ask("POST", f"{control}/api/v1/events", {"type": "Reboot", "targets": ["solo"]})
    _, shown = _ask("GET", events)
    known = load_migrations("postgres")
    version = len(known) + 1
    contract = Migration(version=version, sql="SELECT 1;", oldest_node=version)
    findings = []
    try:
        asyncio.run(migrate(conninfo_of(dsn), (*known, contract)))
        findings.append("a contract was done while it ran")
    except WouldHarmNodes:
        pass
    node.send_signal(signal.SIGSTOP)
    with psycopg.connect(dsn) as connection:  # As if the pause had been longer than that.
        connection.execute(b"UPDATE nodes SET seen_at = seen_at - interval '1 minute'")
    asyncio.run(migrate(conninfo_of(dsn), (*known, contract)))
    before = _journal(dsn)
    node.send_signal(signal.SIGCONT)
    approval = {"StartRequests": [{"EventId": shown["Events"][0]["EventId"]}]}
    asked: list[tuple[str, str, Any, int]] = [
        ("POST", events, approval, 503),
        ("POST", f"{control}/api/v1/events", {"type": "Freeze", "targets": ["solo"]}, 503),
        ("GET", events, None, 200),
    ]
    for method, url, body, expected in asked:
        status, answer = _ask(method, url, body)
        if status != expected:
            findings.append(f"{method} {url} got {status}: {answer}")
    if _journal(dsn) != before:
        findings.append("it wrote to the journal")
    status, answer = _ask("GET", f"{control}/readyz")
    if (status, answer.get("code")) != (503, "node-outdated"):
        findings.append(f"/readyz says {status}: {answer}")
    return findings


def _journal(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(b"SELECT count(*) FROM journal").fetchone()
    assert found is not None
    return int(found[0])


def _ask(method: str, url: str, body: Any = None, content_type: str = "") -> tuple[int, Any]:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body else None
    headers = {"Metadata": "true", "Content-Type": content_type or "application/json"}
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_READY_S_MAX) as answer:  # noqa: S310
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text.decode()
