"""The stream: parsing, and coming back after it broke."""

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.cli.event_stream import (
    Back,
    Entry,
    Feed,
    Happening,
    Lost,
    Message,
    Parser,
    follow,
    messages,
)
from fairwarning.common.command_errors import Disconnected, Problem

TEXT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]))


def parse(text: str) -> list[Message]:
    return list(messages(Parser(), iter(text.removesuffix("\n").split("\n"))))


def test_a_message_ends_with_an_empty_line() -> None:
    assert parse("id: 7\nevent: Started\ndata: {}\n\n") == [
        Message(data="{}", kind="Started", id="7")
    ]


def test_comments_unknown_fields_and_empty_messages_are_skipped() -> None:
    assert parse(": still here\n\nretry: 1000\n\nfoo: bar\nevent: x\n\ndata:y\n\n") == [
        Message(data="y")
    ]


def test_an_id_stays_until_the_next_and_one_with_nul_is_ignored() -> None:
    found = parse("id: 7\ndata: a\n\ndata: b\n\nid: 8\0\ndata: c\n\n")
    assert [each.id for each in found] == ["7", "7", "7"]


def test_what_the_end_cuts_off_is_dropped() -> None:
    assert parse("data: whole\n\ndata: half\n") == [Message(data="whole")]


def test_retry_is_kept_and_nonsense_is_not() -> None:
    parser = Parser()
    parser.feed("retry: 1500")
    parser.feed("retry: soon")
    assert parser.retry_ms == 1500


@given(st.lists(TEXT, min_size=1), TEXT)
def test_any_data_comes_through(data: list[str], id: str) -> None:
    lines = [f"id: {id}", *(f"data: {each}" for each in data), ""]
    (found,) = messages(Parser(), iter(lines))
    assert (found.data, found.id) == ("\n".join(data), id)


class Script:
    """What each connection does: lines to give, or an error to raise. Then it is done."""

    def __init__(self, *connections: list[str] | Exception) -> None:
        self.connections = list(connections)
        self.after: list[str | None] = []
        self.pauses: list[float] = []

    @contextmanager
    def open(self, after: str | None) -> Iterator[Iterator[str]]:
        self.after.append(after)
        what = self.connections.pop(0) if self.connections else Problem("over")
        if isinstance(what, Exception):
            raise what
        yield iter(what)

    def run(self, after: str | None = None) -> list[Happening]:
        found: list[Happening] = []
        with pytest.raises(Problem, match="over"):
            found += follow(self.open, after, self.pauses.append)
        return found


def lines(*positions: int) -> list[str]:
    return [
        line
        for each in positions
        for line in (f"id: {each}", f"data: {json.dumps({'position': str(each)})}", "")
    ]


def entry(position: int) -> Entry:
    return Entry({"position": str(position)})


def test_it_resumes_after_the_last_entry() -> None:
    script = Script([*lines(1, 2), "id: 3", "data: cut"], lines(3))
    assert script.run("0") == [entry(1), entry(2), Back(), entry(3)]
    assert script.after == ["0", "2", "3"]


def test_an_entry_without_a_position_moves_nothing() -> None:
    nameless = [f"data: {json.dumps({'position': 'x'})}", ""]
    script = Script(lines(1), nameless, lines(2))
    assert len(script.run("0")) == 5
    assert script.after == ["0", "1", "1", "2"]


def test_it_says_that_the_connection_is_lost_and_waits_longer_each_time() -> None:
    gone = Disconnected("refused")
    script = Script(lines(1), gone, gone, gone, gone, gone, lines(2))
    assert script.run() == [entry(1), *[Lost("refused")] * 5, Back(), entry(2)]
    assert script.after[1:] == ["1"] * 6 + ["2"]
    assert script.pauses == [0.5, 1, 2, 4, 8, 10, 0.5]


def test_the_server_may_ask_for_a_longer_pause_but_not_for_hours() -> None:
    script = Script(["retry: 3000", ""], ["retry: 99999999", ""])
    script.run()
    assert script.pauses == [3, 10]


def test_a_feed_without_time_limit_still_notices_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python notices a signal that came just before a wait only after that wait."""

    class Interrupted(queue.SimpleQueue[Happening | Exception]):
        def get(self, block: bool = True, timeout: float | None = None) -> Happening | Exception:
            assert timeout is not None, "this wait has no end"
            if not waits:
                raise KeyboardInterrupt
            waits.pop()
            raise queue.Empty

    @contextmanager
    def silent(after: str | None) -> Iterator[Iterator[str]]:
        released.wait()
        yield iter(())

    waits, released = [1, 2], threading.Event()
    monkeypatch.setattr(queue, "SimpleQueue", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        Feed(silent, None).next()
    assert not waits
