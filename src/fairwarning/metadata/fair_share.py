"""Fair share limits how much of the event loop one source address may take.

Parsing a request, and making a connection from an accepted socket, each take the event loop for
some ten microseconds (a turn). In a round of a millisecond, each address gets four turns, no matter
how many connections it has or how much it has sent. Its other work waits for the next rounds, in
order. So even an address that floods us leaves most of each millisecond to others. Known polls need
no turn, because they cost less than this queue.
"""

import asyncio
from collections import deque
from collections.abc import Callable

TURNS_PER_ROUND = 4
"""How many turns an address gets in a round. A turn takes some ten microseconds."""
ROUND_S = 0.001  # The shortest time that a timer of the event loop keeps well.


class FairShare:
    """Decides which address may use the event loop next."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        """How many turns an address has had in this round."""
        self._ends_s = float("-inf")
        """When the round is over, by the clock of the event loop."""
        self._is_timed = False
        """Whether a timer begins the next round. If not, the next call of `run` begins it."""
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def run(self, address: str, go: Callable[[], None]) -> None:
        """Call `go` as soon as the address has a turn, perhaps at once. `go` must not raise."""
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
        """Wait until the address gets a turn."""
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
