"""What the check makes of a handler's requests. Their order decides, not the time of looking."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName, ScopeId
from fairwarning.handler_check.observations import HandlerLog, Observations
from fairwarning.metadata.request_watchers import ObservedRequest
from fairwarning.testing.server_loop import TimedRequest

EVENT = "E3E70682-C209-4CAC-A29F-6FBED82C07CD"


class Requests:
    """A server that has got these requests: `p` is a poll and `a` an approval, a second apart."""

    def __init__(self, letters: str) -> None:
        self.all = [TimedRequest(float(n), _request(each)) for n, each in enumerate(letters)]
        self.now_s = 0.0
        self.waits: list[float] = []

    def timed_requests(self, _: str, *, kind: str | None = None) -> list[TimedRequest]:
        return [each for each in self.all if kind in (None, each.request.kind)]

    def requests(self, _: str, *, kind: str | None = None) -> list[ObservedRequest]:
        return [each.request for each in self.timed_requests(_, kind=kind)]

    def wait_until(self, condition: Any, *, timeout: float) -> None:
        self.waits.append(timeout)
        self.now_s += timeout
        if not condition():
            raise AssertionError


def _request(letter: str) -> ObservedRequest:
    body = json.dumps({"StartRequests": [{"EventId": EVENT}]}).encode()
    return ObservedRequest(
        at_ms=Instant(0),
        scope_id=ScopeId("availability-set/web"),
        is_test=True,
        instance=InstanceName("web-0"),
        kind={"p": "events", "a": "approve"}[letter],
        version="2020-07-01",
        user_agent="",
        body=body,
        fault=None,
    )


def observe(letters: str, folder: Path, patience_s: float = 10.0) -> Observations:
    server: Any = Requests(letters)
    return Observations(server, "web-0", HandlerLog(folder / "log"), patience_s)


@pytest.mark.parametrize(
    ("letters", "most"), [("pap", 1), ("papapa", 1), ("paa", 2), ("ppapaaap", 3), ("ppp", 0)]
)
def test_the_most_approvals_between_two_polls(tmp_path: Path, letters: str, most: int) -> None:
    assert observe(letters, tmp_path).most_approvals_in_a_poll(EVENT) == most


@pytest.mark.parametrize(
    ("letters", "count"), [("papp", 0), ("pappa", 0), ("pappap", 0), ("papppa", 1), ("pppppaa", 2)]
)
def test_approvals_after_the_next_two_polls(tmp_path: Path, letters: str, count: int) -> None:
    """The first poll after the mark shows the new document; at the second it has been read."""
    assert observe(letters, tmp_path).approvals_after_polls(EVENT, 2, since=2) == count


def test_pauses_are_between_polls_and_before_or_after_a_mark(tmp_path: Path) -> None:
    observed = observe("ppapp", tmp_path)
    assert observed.poll_pauses_s() == [1.0, 2.0, 1.0]
    assert observed.poll_pauses_s(since=3) == [1.0]
    assert observed.poll_pauses_s(until=2) == [1.0]


class BusyHandler:
    """A handler that is alive, and waits nine tenths of the time for a core."""

    is_alive = True
    ending = "is running"

    def __init__(self, server: Requests) -> None:
        self._server = server

    def scheduling_delay_s(self) -> float:
        return 0.9 * self._server.now_s


def test_the_time_without_a_core_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = observe("ppp", tmp_path)
    server: Any = observed._server
    handler: Any = BusyHandler(server)
    observed.handler = handler
    monkeypatch.setattr(
        "fairwarning.handler_check.observations.time.monotonic", lambda: server.now_s
    )
    assert not observed.wait(lambda: False, within_s=10.0)
    assert server.now_s == pytest.approx(100.0, rel=0.1)


def test_evidence_has_requests_with_their_time_and_lines_of_the_log(tmp_path: Path) -> None:
    observed = observe("pap", tmp_path)
    observed._began_s = 0.0
    (tmp_path / "log").write_text(f"drain {EVENT}\n")
    assert observed.evidence(EVENT) == (
        "after 1.0 s: approved E3E70682 with 2020-07-01",
        "after 2.0 s: its last poll, with 2020-07-01; 2 in all",
        f"line 1 of its log: drain {EVENT}",
    )


def test_the_log_is_read_whatever_the_case_and_whatever_else_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = HandlerLog(path)
    assert (log.is_written, log.count("drain", "AB-1")) == (False, 0)
    path.write_bytes(b"drain ab-1\nDrain AB-1 at noon\n\nundo\n\xff\xfe AB-1\nundo AB-12\n")
    assert log.is_written
    assert log.count("drain", "Ab-1") == 2
    assert log.count("undo", "AB-1") == 0
    assert log.count("undo", "AB-12") == 1
