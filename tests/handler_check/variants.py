"""The good example with one fault in it, each one that real handlers have.

`python variants.py FAULT` runs it; `none` is the good one itself, only more eager.
"""

import importlib.util
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/handlers/good_handler.py"


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
    def seconds_left(event: dict[str, str], _: object) -> float:
        found = parsedate_to_datetime(event["NotBefore"])
        left: float = (found - good.datetime.now(good.timezone.utc)).total_seconds()
        return left

    good.seconds_left = seconds_left


def reads_two_date_forms(good: Any) -> None:
    """And takes any other for now."""

    def seconds_left(event: dict[str, str], _: object) -> float:
        for read in (parsedate_to_datetime, good.datetime.fromisoformat):
            try:
                found = read(event["NotBefore"].replace("Z", "+00:00"))
            except ValueError:
                continue
            left: float = (found - good.datetime.now(good.timezone.utc)).total_seconds()
            return left
        return 0.0

    good.seconds_left = seconds_left


def approves_twice_in_a_poll(good: Any) -> None:
    right = good.Endpoint.approve

    def approve(endpoint: Any, event: str) -> bool:
        right(endpoint, event)
        return bool(right(endpoint, event))

    good.Endpoint.approve = approve


def hurries_when_throttled(good: Any) -> None:
    """It asks 20 times a second until it is answered."""
    right = good.Endpoint.ask

    def ask(endpoint: Any, path: str, body: bytes | None = None) -> Any:
        while True:
            try:
                return right(endpoint, path, body)
            except urllib.error.HTTPError as error:
                if error.code != 429:
                    raise
                good.time.sleep(0.05)

    good.Endpoint.ask = ask


def compares_incarnations_as_text(good: Any) -> None:
    right = good.Endpoint.document
    last = ""

    def document(endpoint: Any) -> Any:
        nonlocal last
        found = right(endpoint)
        if found is None:
            return None
        number = found["DocumentIncarnation"]
        # It knows that the service may count from 1 again.
        if number > 1 and str(number) < last:
            return None
        last = str(number)
        return found

    good.Endpoint.document = document


def looks_at_resources_once(good: Any) -> None:
    right = good.step
    first: dict[str, list[str]] = {}

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        for each in events:
            first.setdefault(each["EventId"], each["Resources"])
        seen = [{**each, "Resources": first[each["EventId"]]} for each in events]
        right(endpoint, memory, me, seen)

    good.step = step


def trusts_its_own_clock(good: Any) -> None:
    right = good.seconds_left
    good.seconds_left = lambda event, _: right(event, good.timedelta())


def asks_with_an_old_version(good: Any) -> None:
    good.VERSIONS = ["2017-08-01"]


def expects_answers_of_http(good: Any) -> None:
    """It dies of an error of the network."""

    def document(endpoint: Any) -> Any:
        try:
            body = endpoint.ask(f"scheduledevents?api-version={endpoint.versions[0]}")
            return json.loads(body) if body else None
        except urllib.error.HTTPError as error:
            if error.code == 400:
                del endpoint.versions[0]
            return None

    good.Endpoint.document = document


def dies_of_an_error(good: Any) -> None:
    right = good.Endpoint.ask

    def ask(endpoint: Any, path: str, body: bytes | None = None) -> Any:
        try:
            return right(endpoint, path, body)
        except urllib.error.HTTPError as error:
            if error.code >= 500 and body is None:
                raise SystemError("the endpoint is broken") from error
            raise

    good.Endpoint.ask = ask


def dies_of_a_late_answer(good: Any) -> None:
    right = good.Endpoint.ask

    def ask(endpoint: Any, path: str, body: bytes | None = None) -> Any:
        endpoint.timeout_s = good.TIMEOUT_S = 1.0
        try:
            return right(endpoint, path, body)
        except OSError as error:
            if isinstance(getattr(error, "reason", error), TimeoutError):
                raise SystemError("no answer") from error
            raise

    good.Endpoint.ask = ask


def stops_at_an_unknown_type(good: Any) -> None:
    right = good.step
    known = {"Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"}

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        if all(each["EventType"] in known for each in events):
            right(endpoint, memory, me, events)

    good.step = step


def refuses_unknown_fields(good: Any) -> None:
    right = good.Endpoint.document

    def document(endpoint: Any) -> Any:
        found = right(endpoint)
        return found if found and {*found} == {"DocumentIncarnation", "Events"} else None

    good.Endpoint.document = document


def works_for_each_line(good: Any) -> None:
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        before = {*memory.drained}
        right(endpoint, memory, me, events)
        ids = [each["EventId"] for each in events]
        for each in {*memory.drained} - before:
            for _ in range(ids.count(each) - 1):
                good.drain(each)

    good.step = step


def leaves_shared_events_alone(good: Any) -> None:
    """This is no fault: it prepares, and leaves the approval to NotBefore."""
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        # Of several VMs the first one would approve, so this VM is never the first.
        right(endpoint, memory, me, [
            {**each, "Resources": ["", *each["Resources"]]}
            if len(each["Resources"]) > 1 else each for each in events
        ])  # fmt: skip

    good.step = step


def insists_on_newest_version(good: Any) -> None:
    good.VERSIONS = ["2020-07-01"]


def falls_back_from_400_only(good: Any) -> None:
    right = good.Endpoint.document

    def document(endpoint: Any) -> Any:
        before = [*endpoint.versions]
        try:
            endpoint.ask(f"scheduledevents?api-version={before[0]}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
        except OSError:
            return None
        return right(endpoint)

    good.Endpoint.document = document


def asks_with_the_preview_first(good: Any) -> None:
    """This is no fault. OpenShift's handler does it."""
    good.VERSIONS = ["2024-07-09", "2020-07-01", "2019-08-01"]


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


def named(name: str) -> Callable[[Any], None]:
    """The function that puts the fault of this name into the good handler."""
    # As a program, this file finds no package of tests without this.
    sys.path.insert(0, str(ROOT))
    from tests.handler_check import variants_in_events

    found: Callable[[Any], None] = globals().get(name) or getattr(variants_in_events, name)
    return found


if __name__ == "__main__":
    handler = load()
    named(sys.argv[1])(handler)
    handler.main()
