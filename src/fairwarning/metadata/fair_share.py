"""Fair share limits how much of the event loop one source address may take.

Parsing a request, and making a connection of an accepted socket, take the event loop for some ten
microseconds. An address gets four such turns in a round of a millisecond, however many connections
it has and however much it has sent. All else that it wants waits for the next rounds, in order. So
even an address that floods us leaves most of each millisecond to the others. Known polls need no
turn: they are cheaper than this queue.
"""

import asyncio
from collections import deque
from collections.abc import Callable

TURNS_PER_ROUND = 4
"""Some ten microseconds each, so one address takes a small part of a round."""
ROUND_S = 0.001


class FairShare:
    """Gives each address its turns, round by round."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        """How many turns an address has had in this round."""
        self._ends_s = float("-inf")
        """When the round is over, by the clock of the event loop."""
        self._is_timed = False
        """Whether a timer begins the next round. Without one, the next call of `run` does."""
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def run(self, address: str, go: Callable[[], None]) -> None:
        """Call `go` at once, or in a later round if the address has had its turns.

        A call in a later round must not raise.
        """
        waiting = self._waiting.get(address)
        if waiting is not None:
            waiting.append(go)
            return
        loop = asyncio.get_running_loop()
        if not self._is_timed and (now_s := loop.time()) >= self._ends_s:
            self._taken.clear()
            self._ends_s = now_s + ROUND_S
        taken = self._taken.get(address, 0)
        if taken < TURNS_PER_ROUND:
            self._taken[address] = taken + 1
            go()
            return
        self._waiting[address] = deque([go])
        if not self._is_timed:
            self._is_timed = True
            loop.call_at(self._ends_s, self._begin_round)

    async def wait(self, address: str) -> None:
        """Return when it is the turn of the address."""
        came = asyncio.Event()
        self.run(address, came.set)
        await came.wait()

    def _begin_round(self) -> None:
        loop = asyncio.get_running_loop()
        self._taken.clear()
        self._ends_s = loop.time() + ROUND_S
        self._is_timed = bool(self._waiting)
        if self._is_timed:
            loop.call_at(self._ends_s, self._begin_round)
        for address, waiting in list(self._waiting.items()):
            while waiting and self._taken.get(address, 0) < TURNS_PER_ROUND:
                self._taken[address] = self._taken.get(address, 0) + 1
                waiting.popleft()()
            if not waiting:
                del self._waiting[address]
