"""Every answer has its own request id and the date of the clock."""

import asyncio
import re
import time
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime
from typing import Any

from fairwarning.metadata.responses import VaryingHeaders

FORM = re.compile(rb"Date: (.{29})\r\nx-ms-request-id: ([0-9a-f-]{36})")


def parts(stamp: VaryingHeaders) -> tuple[str, str]:
    found = FORM.fullmatch(stamp.next())
    assert found is not None
    return found[1].decode(), found[2].decode()


async def test_no_id_comes_twice_and_every_answer_is_counted() -> None:
    for stamp in (VaryingHeaders(), VaryingHeaders(lambda: 1_600_000_000.5)):
        given = [parts(stamp)[1] for _ in range(1_000)]
        assert len(set(given)) == stamp.count == 1_000


async def test_the_date_is_todays() -> None:
    before = int(time.time())
    date = seconds_of(parts(VaryingHeaders())[0])
    assert before <= date <= time.time()


async def test_a_clock_that_is_moved_by_hand_is_followed_at_once() -> None:
    now_s = 1_600_000_000.0
    stamp = VaryingHeaders(lambda: now_s)
    seen = [parts(stamp)[0]]
    for step_s in (3_600.0, -7_200.0):
        now_s += step_s
        seen.append(parts(stamp)[0])
    assert seen == [formatdate(at, usegmt=True) for at in (1.6e9, 1.6e9 + 3600, 1.6e9 - 3600)]


class TimersAtHand(asyncio.SelectorEventLoop):
    """Timers go off when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[tuple[float, Callable[[], object]]] = []

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, **more: Any
    ) -> Any:
        self.timers.append((delay, callback))
        return super().call_later(3600, callback, *args, **more)


def test_the_date_is_made_anew_when_its_second_is_over() -> None:
    loop = TimersAtHand()

    async def story() -> None:
        stamp = VaryingHeaders()
        first, *_ = [parts(stamp) for _ in range(300)]
        ((left_s, is_over),) = loop.timers
        assert 0 < left_s <= 1
        stamp.block = b"Date: " + b"?" * 29
        is_over()
        assert abs(seconds_of(parts(stamp)[0]) - seconds_of(first[0])) <= 1
        assert len(loop.timers) == 2
        assert stamp.count == 301

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(story())


def seconds_of(date: str) -> float:
    return parsedate_to_datetime(date).timestamp()
