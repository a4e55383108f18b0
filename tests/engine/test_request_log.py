"""How long requests are looked at."""

import asyncio

from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName, ScopeId
from fairwarning.engine.request_log import KEPT, Request, Requests


async def test_who_asks_again_looks_on_as_long_as_was_asked_last() -> None:
    requests = Requests()
    switched: list[bool] = []
    requests.switch = switched.append
    requests.watch(0)
    requests.watch(3_600)
    # The event loop calls timers in the order of their times, so that of the first has passed.
    await asyncio.sleep(0.001)
    assert 3_000 < requests.left_s <= 3_600
    assert switched == [True]
    requests.stop()
    requests.stop()
    assert switched == [True, False]
    assert requests.left_s == 0


def test_the_newest_requests_are_kept_and_come_first() -> None:
    requests = Requests()
    for number in range(KEPT + 5):
        requests.note(
            Request(
                at_ms=Instant(number),
                scope_id=ScopeId("s"),
                instance=InstanceName("i"),
                kind="events",
                version="",
                agent="",
                events=(),
                fault=None,
            )
        )
    assert [each.at_ms for each in requests.list()] == list(range(KEPT + 4, 4, -1))
    assert requests.count == KEPT + 5
