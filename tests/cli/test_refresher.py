"""What the live screen knows: asked for again when it may have missed something, and only then."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from fairwarning.cli.api_client import Api
from fairwarning.cli.common_options import ServerClock
from fairwarning.cli.event_stream import Back, Entry, Lost
from fairwarning.cli.live_screen.refresher import Refresher
from fairwarning.common.command_errors import Problem
from tests.cli.values import NOW, WEB, a_scope, an_entry, an_event, an_instance

DB = "sub/group/vm/db"


class Server:
    """Its stream is silent: what happens is told to the refresher by the test."""

    def __init__(self) -> None:
        self.scopes = {WEB: a_scope(WEB, an_instance("web-0")), DB: a_scope(DB)}
        self.events = [an_event()]
        self.problem: Problem | None = None
        self.asked: list[str] = []
        self.after: list[str | None] = []
        self.is_open = threading.Event()

    def get(self, *path: str, **params: Any) -> dict[str, Any]:
        self.asked.append(path[0])
        if path[0] == "history":
            return {"entries": [an_entry(position="9"), an_entry(position="8")]}
        if self.problem is not None:
            raise self.problem
        if path[1] not in self.scopes:
            raise Problem("no such scope", status=404)
        return self.scopes[path[1]]

    def pages(self, *path: str, key: str, **params: Any) -> dict[str, Any]:
        self.asked.append(path[0])
        if self.problem is not None:
            raise self.problem
        return {key: self.events if key == "events" else list(self.scopes.values())}

    @contextmanager
    def stream(self, after: str | None) -> Iterator[Iterator[str]]:
        self.after.append(after)
        self.is_open.set()
        threading.Event().wait()
        yield iter(())


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def clock() -> ServerClock:
    return ServerClock({"now": "2026-11-16T12:00:00Z", "virtual": True})


@pytest.fixture
def refresher(server: Server, clock: ServerClock) -> Refresher:
    found = Refresher(cast(Api, server), clock)
    assert server.is_open.wait()
    server.asked.clear()
    return found


def ids(refresher: Refresher) -> list[str]:
    return [each["id"] for each in refresher.seen.scopes]


def test_it_begins_with_all_there_is_and_goes_on_behind_the_newest_line(
    server: Server, refresher: Refresher
) -> None:
    assert server.after == ["9"]
    assert [each["position"] for each in refresher.seen.entries] == ["8", "9"]
    assert (ids(refresher), len(refresher.seen.events)) == ([WEB, DB], 1)


def test_a_line_has_its_scope_and_the_events_asked_for_again(
    server: Server, refresher: Refresher, clock: ServerClock
) -> None:
    server.scopes[WEB] = a_scope(WEB, an_instance("web-0"), an_instance("web-1"))
    server.events = []
    refresher._take([Entry(an_entry(position="10", at="2026-11-16T12:30:00.000Z"))])
    assert server.asked == ["scopes", "events"]
    assert [len(each["instances"]) for each in refresher.seen.scopes if each["id"] == WEB] == [2]
    assert refresher.seen.events == ()
    assert (clock.now() - NOW).total_seconds() == 1_800


def test_a_scope_that_is_gone_is_shown_no_more(server: Server, refresher: Refresher) -> None:
    del server.scopes[DB]
    refresher._take([Entry(an_entry(position="10", scope=DB))])
    assert ids(refresher) == [WEB]


def test_a_line_about_no_scope_asks_for_none(server: Server, refresher: Refresher) -> None:
    refresher._take([Entry(an_entry(position="10", scope=""))])
    assert server.asked == ["events"]
    assert len(ids(refresher)) == 2


@pytest.mark.parametrize(("count", "asked"), [(10, ["scopes"] * 10), (11, ["fleet"])])
def test_after_many_changes_the_whole_fleet_is_asked_for(
    server: Server, refresher: Refresher, count: int, asked: list[str]
) -> None:
    scopes = [f"sub/group/vm/{n}" for n in range(count)]
    refresher._take([Entry(an_entry(position=f"1{each}", scope=each)) for each in scopes])
    assert server.asked == [*asked, "events"]


def test_while_the_connection_is_lost_nothing_is_asked_and_afterwards_everything(
    server: Server, refresher: Refresher
) -> None:
    """What happened in between may not come with the stream."""
    refresher._take([Lost("refused")])
    assert (refresher.seen.lost, server.asked) == ("refused", [])
    del server.scopes[DB]
    refresher._take([Back()])
    assert (refresher.seen.lost, server.asked) == ("", ["fleet", "events"])
    assert ids(refresher) == [WEB]
    server.asked.clear()
    refresher._take([])
    assert server.asked == []


def test_a_look_that_meets_an_outage_is_repeated(server: Server, refresher: Refresher) -> None:
    server.problem = Problem("the store is down", status=503)
    refresher._take([Entry(an_entry(position="10"))])
    assert refresher.seen.lost == "the store is down"
    assert len(ids(refresher)) == 2
    server.problem = None
    server.asked.clear()
    refresher._take([Back()])
    assert (refresher.seen.lost, server.asked) == ("", ["fleet", "events"])


def test_a_no_is_final(server: Server, refresher: Refresher) -> None:
    server.problem = Problem("the token was revoked", status=401)
    with pytest.raises(Problem, match="revoked"):
        refresher._take([Entry(an_entry(position="10"))])
