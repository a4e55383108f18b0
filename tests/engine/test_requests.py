"""How long requests are looked at."""

import asyncio

from fairwarning.engine.requests import Requests


async def test_who_asks_again_looks_on_as_long_as_was_asked_last() -> None:
    requests = Requests()
    switched: list[bool] = []
    requests.switch = switched.append
    requests.watch(0)
    requests.watch(3_600)
    # The event loop calls timers in the order of their times, so that of the first has passed.
    await asyncio.sleep(0.001)
    assert requests.left_s > 3_000
    assert switched == [True]
    requests.stop()
    assert switched == [True, False]
