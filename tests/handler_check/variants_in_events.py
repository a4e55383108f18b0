"""Faults that show in the middle of an event: a handler undoes too early, too often or not at all.

Each function puts one fault into the good handler, as in `variants`.
"""

import json
import urllib.error
from collections.abc import Callable
from typing import Any

NO_EVENTS = b'{"DocumentIncarnation": 1000000, "Events": []}'


def _undoes_on(good: Any, is_bad: Callable[[Exception | bytes], bool]) -> None:
    """It takes such an answer, or such an error instead of one, for a document without events."""
    right = good.Endpoint.ask

    def ask(endpoint: Any, path: str, body: bytes | None = None) -> Any:
        is_poll = path.startswith("scheduledevents") and body is None
        try:
            found = right(endpoint, path, body)
        except OSError as error:
            if is_poll and is_bad(error):
                return NO_EVENTS
            raise
        return NO_EVENTS if is_poll and is_bad(found) else found

    good.Endpoint.ask = ask
    believes_old_documents(good)


def _reason(answer: Exception | bytes) -> object:
    """The error of the network, which urllib may wrap."""
    return getattr(answer, "reason", answer)


def undoes_on_an_empty_body(good: Any) -> None:
    _undoes_on(good, lambda answer: answer == b"")


def undoes_on_an_error(good: Any) -> None:
    # An unknown api-version is answered with 400, which it understands.
    _undoes_on(
        good, lambda answer: isinstance(answer, urllib.error.HTTPError) and answer.code != 400
    )


def undoes_on_a_cut_connection(good: Any) -> None:
    _undoes_on(good, lambda answer: isinstance(_reason(answer), ConnectionResetError))


def undoes_on_a_refused_connection(good: Any) -> None:
    _undoes_on(good, lambda answer: isinstance(_reason(answer), ConnectionRefusedError))


def undoes_on_a_late_answer(good: Any) -> None:
    good.TIMEOUT_S = good.FIRST_TIMEOUT_S = 1.0
    _undoes_on(good, lambda answer: isinstance(_reason(answer), TimeoutError))


def believes_old_documents(good: Any) -> None:
    good.Memory.believed = lambda _, document: document["Events"]


def starts_over_with_a_lower_incarnation(good: Any) -> None:
    right = good.Memory.believed

    def believed(memory: Any, document: Any) -> Any:
        if document["DocumentIncarnation"] < memory.incarnation:
            memory.drained.clear()
        return right(memory, document)

    good.Memory.believed = believed


def takes_the_past_for_over(good: Any) -> None:
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        current = [
            each
            for each in events
            if not each["NotBefore"] or good.seconds_left(each, good.timedelta()) > 0
        ]
        right(endpoint, memory, me, current)

    good.step = step


def undoes_all_at_once(good: Any) -> None:
    right = good.step

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        shown = {each["EventId"] for each in events}
        if any(each not in shown for each in memory.drained):
            right(endpoint, memory, me, [])
        right(endpoint, memory, me, events)

    good.step = step


def undoes_twice(good: Any) -> None:
    """The second time comes a poll later, as of a handler that confirms its work."""
    right = good.step
    due: list[str] = []

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        while due:
            good.note("undo", due.pop())
        before = [*memory.drained]
        right(endpoint, memory, me, events)
        due.extend(each for each in before if each not in memory.drained)

    good.step = step


def approves_what_is_gone(good: Any) -> None:
    """It goes on with approvals that were refused, whether the event is there or not."""
    right, approve = good.step, good.Endpoint.approve
    refused: set[str] = set()

    def noting(endpoint: Any, event: str) -> bool:
        is_taken: bool = approve(endpoint, event)
        (refused.discard if is_taken else refused.add)(event)
        return is_taken

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        shown = {each["EventId"] for each in events}
        for each in [*refused - shown]:
            approve(endpoint, each)
        right(endpoint, memory, me, events)

    good.Endpoint.approve = noting
    good.step = step


def dies_of_a_cut_approval(good: Any) -> None:
    def approve(endpoint: Any, event: str) -> bool:
        body = json.dumps({"StartRequests": [{"EventId": event}]}).encode()
        try:
            endpoint.ask(f"scheduledevents?api-version={endpoint.versions[0]}", body)
        except urllib.error.HTTPError:
            return False
        return True

    good.Endpoint.approve = approve


def prepares_again_after_a_late_approval(good: Any) -> None:
    good.TIMEOUT_S = good.FIRST_TIMEOUT_S = 1.0
    approve, late = good.Endpoint.approve, set()
    right = good.step

    def noting(endpoint: Any, event: str) -> bool:
        if not approve(endpoint, event):
            late.add(event)
            return False
        return True

    def step(endpoint: Any, memory: Any, me: str, events: Any) -> None:
        memory.drained = [each for each in memory.drained if each not in late]
        late.clear()
        right(endpoint, memory, me, events)

    good.Endpoint.approve = noting
    good.step = step


def approves_only_what_it_just_drained(good: Any) -> None:
    drain, approve, ours = good.drain, good.Endpoint.approve, set()

    def noting(event: str) -> None:
        ours.add(event)
        drain(event)

    good.drain = noting
    good.Endpoint.approve = lambda endpoint, event: event in ours and approve(endpoint, event)


def undoes_at_its_start(good: Any) -> None:
    right = good.Memory.__init__

    def begin(memory: Any) -> None:
        right(memory)
        for each in memory.drained:
            good.undo(each)
        memory.drained = []
        memory.save()

    good.Memory.__init__ = begin


def never_forgets(good: Any) -> None:
    right = good.Memory.save

    def save(memory: Any) -> None:
        now = memory.drained
        before = json.loads(good.STATE.read_text()) if good.STATE.exists() else []
        memory.drained = [*before, *(each for each in now if each not in before)]
        right(memory)
        memory.drained = now

    good.Memory.save = save
