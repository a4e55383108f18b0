"""Ways to change a good round, and the assertion that one promise is then found broken."""

from collections.abc import Callable
from typing import Any

import pytest

from fairwarning.live_check.checks import check
from fairwarning.live_check.records import Records, Request
from tests.live_check.round_builder import RoundBuilder, at, good_round

Break = Callable[[RoundBuilder], None]


def drop(records: Records, kind: str, id: str | None = None) -> None:
    """Take such a line out of the history."""
    kept = [e for e in records.history if e.kind != kind or (id is not None and e.event != id)]
    assert len(kept) < len(records.history)
    records.history[:] = kept


def change_event(make: RoundBuilder, id: str, **changes: Any) -> None:
    """Let the history say something else about the event from the beginning."""
    for entry in make.records.history:
        if entry.kind == "Scheduled" and entry.event == id:
            entry.data["event"].update(changes)


def change_end(make: RoundBuilder, id: str, kind: str) -> None:
    """Let the event have ended in another way."""
    next(e for e in make.records.history if e.event == id and e.kind == "Completed").kind = kind


def hide_documents(make: RoundBuilder, before: float = 99) -> None:
    """Let no poll up to then have got an answer."""
    for poll in make.records.polls:
        if poll.sent.mono_s < at(before).mono_s:
            poll.status = poll.document = poll.answered = None


def request_of(make: RoundBuilder, label: str) -> Request:
    return next(each for each in make.records.requests if each.label == label)


def broken(make: RoundBuilder) -> set[str]:
    return {finding.promise for finding in check(make.records)}


def restart(make: RoundBuilder, name: str, *, at_second: float, lasts: float = 0.4) -> None:
    """An owner restarts the instance, while DUE is under way or not."""
    make.scheduled("RESTART", [name], 1, 3, operation="restart")
    make.ask("restart", "RESTART", 0.99)
    make.started("RESTART", 3.001)
    make.impact("RESTART", [name], at_second, lasts=lasts)
    make.ended("RESTART", "Completed", at_second + lasts + 0.1)
    hide_documents(make)


def cases(broken: dict[str, dict[Break, str]]) -> list[Any]:
    """The parameters of a test: the promise, what breaks it, and words of the finding."""
    return [
        pytest.param(promise, break_it, words, id=getattr(break_it, "__name__", None))
        for promise, ways in broken.items()
        for break_it, words in ways.items()
    ]


def assert_only_broken(promise: str, break_it: Break, words: str) -> None:
    """The words say which check has found it: another one of the promise is not enough."""
    make = good_round()
    break_it(make)
    assert broken(make) == {promise}
    assert [each for each in check(make.records) if words in each.text]
