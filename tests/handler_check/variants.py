"""The good example with one fault in it, each one that real handlers have.

`python variants.py FAULT` runs it; `none` is the good one itself, only more eager.
"""

import importlib.util
import json
import os
import socket
import sys
import urllib.request
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples/handlers/good_handler.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("good_handler", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.POLL_S = 0.2
    module.hostname = socket.gethostname
    return module


def ignores_resources(good: Any) -> None:
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        right(endpoint, memory, me, [{**each, "Resources": [me]} for each in events])

    good.step = step


def looks_for_text(good: Any) -> None:
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        ours = [each for each in events if me in " ".join(each["Resources"])]
        right(endpoint, memory, me, [{**each, "Resources": [me]} for each in ours])

    good.step = step


def compares_hostname(good: Any) -> None:
    good.Endpoint.name = lambda _: good.hostname()


def expects_one_resource(good: Any) -> None:
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        right(endpoint, memory, me, [each for each in events if each["Resources"] == [me]])

    good.step = step


def stops_after_first(good: Any) -> None:
    def undo(event: str) -> None:
        good.note("undo", event)
        good.step = lambda *_: None

    good.undo = undo


def reads_first_event(good: Any) -> None:
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        # It works through one at a time, and never comes to the next while the first is there.
        right(endpoint, memory, me, events[:1])

    good.step = step


def approves_far_ahead(good: Any) -> None:
    good.SOON_S = float("inf")


def approves_in_a_loop(good: Any) -> None:
    right = good.Endpoint.approve

    def approve(endpoint: Any, event: str) -> bool:
        for _ in range(20):
            right(endpoint, event)
        return False

    good.Endpoint.approve = approve


def believes_in_approvals(good: Any) -> None:
    right = good.Endpoint.approve

    def approve(endpoint: Any, event: str) -> bool:
        right(endpoint, event)
        return True

    good.Endpoint.approve = approve


def approves_twice_at_most(good: Any) -> None:
    right = good.Endpoint.approve
    left: dict[str, int] = {}

    def approve(endpoint: Any, event: str) -> bool:
        left[event] = left.get(event, 2) - 1
        return bool(left[event] >= 0 and right(endpoint, event))

    good.Endpoint.approve = approve


def approves_what_is_gone(good: Any) -> None:
    """It goes on with every event that it has prepared for."""
    right = good.step
    prepared: set[str] = set()

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        right(endpoint, memory, me, events)
        prepared.update(memory.drained)
        for id in prepared - {each["EventId"] for each in events}:
            endpoint.approve(id)

    good.step = step


def never_undoes(good: Any) -> None:
    good.undo = lambda _: None


def forgets_in_reboot(good: Any) -> None:
    good.Memory.save = lambda _: None


def skips_lower_incarnations(good: Any) -> None:
    right = good.Endpoint.document
    last = 0

    def document(endpoint: Any) -> Any:
        nonlocal last
        found = right(endpoint)
        if found is None or found["DocumentIncarnation"] < last:
            return None
        last = found["DocumentIncarnation"]
        return found

    good.Endpoint.document = document


def parses_whatever_comes(good: Any) -> None:
    def document(endpoint: Any) -> Any:
        try:
            body = endpoint.ask(f"scheduledevents?api-version={endpoint.versions[0]}")
        except OSError:
            endpoint.versions = endpoint.versions[1:] or endpoint.versions
            return None
        return json.loads(body)

    good.Endpoint.document = document


def reads_one_date_form(good: Any) -> None:
    def seconds_left(event: dict[str, str]) -> float:
        found = parsedate_to_datetime(event["NotBefore"])
        left: float = (found - good.datetime.now(good.timezone.utc)).total_seconds()
        return left

    good.seconds_left = seconds_left


def reads_two_date_forms(good: Any) -> None:
    """And takes any other for now."""

    def seconds_left(event: dict[str, str]) -> float:
        for read in (parsedate_to_datetime, good.datetime.fromisoformat):
            try:
                found = read(event["NotBefore"].replace("Z", "+00:00"))
            except ValueError:
                continue
            left: float = (found - good.datetime.now(good.timezone.utc)).total_seconds()
            return left
        return 0.0

    good.seconds_left = seconds_left


def insists_on_newest_version(good: Any) -> None:
    good.VERSIONS = ["2020-07-01"]


def uses_proxy(good: Any) -> None:
    good.plain = urllib.request.build_opener()


def approves_behind_a_proxy(good: Any) -> None:
    """Nobody has this fault: it shows what a case put into the environment."""
    right = good.Endpoint.approve

    def approve(endpoint: Any, event: str) -> bool:
        return "http_proxy" in os.environ and bool(right(endpoint, event))

    good.Endpoint.approve = approve


def keeps_no_log(good: Any) -> None:
    good.LOG = None


def never_approves(good: Any) -> None:
    good.Endpoint.approve = lambda *_: True


def none(good: Any) -> None:
    pass


if __name__ == "__main__":
    handler = load()
    globals()[sys.argv[1]](handler)
    handler.main()
