"""Commands with `--wait` follow an event until it is over."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Program
from tests.cli.fake import Answer, Fake, problem
from tests.cli.values import ID, OTHER_ID, an_entry, an_event


def sse(*entries: dict[str, Any]) -> Answer:
    text = "".join(f"id: {e['position']}\ndata: {json.dumps(e)}\n\n" for e in entries)
    return Answer(200, f"retry: 1\n\n{text}".encode(), "text/event-stream")


def test_waiting_follows_the_event_through_a_broken_stream(fake: Fake, run: Program) -> None:
    started = an_entry(position="8", kind="Started", text="it started")
    ended = an_entry(position="9", kind="Completed", text="it is over")
    fake.on("POST /events", an_event())
    fake.on(
        f"GET /events/{ID}",
        an_event(timeline=[an_entry()]),
        an_event(phase="started"),
        an_event(phase="started"),
        an_event(phase="completed"),
    )
    fake.on("GET /stream", sse(an_entry(position="7x", event=OTHER_ID), started), sse(ended))
    result = run("schedule", "reboot", "web-0", "--wait", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["phase"] == "completed"
    told = result.stderr
    assert told.index("it started") < told.index("it is over")
    after = [asked.headers.get("last-event-id") for asked in fake.of("GET /stream")]
    assert after[:2] == ["7", "8"]


def test_waiting_looks_again_when_the_connection_is_back(fake: Fake, run: Program) -> None:
    """The event may have ended meanwhile, and a server that stepped back never says so."""
    fake.on("POST /events", an_event())
    fake.on(f"GET /events/{ID}", an_event(timeline=[an_entry()]), an_event(phase="completed"))
    fake.on("GET /stream", sse(), sse(), problem(401, "token-needed", "nobody looked again"))
    result = run("schedule", "reboot", "web-0", "--wait", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["phase"] == "completed"


def test_waiting_for_what_fails_is_a_failure(fake: Fake, run: Program) -> None:
    fake.on("POST /instances/web-0/restart", an_event())
    fake.on(f"GET /events/{ID}", an_event(phase="failed", outcome="no such disk"))
    result = run("restart", "web-0", "--wait")
    assert result.exit_code == 1
    assert "no such disk" in result.stderr
    assert f"fairwarning event show {ID}" in result.stderr


def test_a_connection_that_is_lost_while_one_waits_is_told(
    fake: Fake, run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.cli.event_stream.PAUSE_S_MIN", 0)
    fake.on("POST /events", an_event())
    ended = an_entry(position="9", kind="Completed", text="it is over")
    fake.on(
        f"GET /events/{ID}",
        an_event(timeline=[an_entry()]),
        an_event(),
        an_event(),
        an_event(phase="completed"),
    )
    fake.on("GET /stream", sse(), Answer(breaks=True), sse(), sse(ended))
    result = run("schedule", "reboot", "web-0", "--wait", "--json")
    assert result.exit_code == 0, result.output
    assert "connection lost (" in result.stderr
