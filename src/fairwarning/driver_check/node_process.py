"""This process runs the driver during a check. It can be killed in any gap of the driver.

It reads requests from its standard input until that ends. A gap is a place where the driver's
coroutine waits for something. Only there can other work of a server run.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import msgspec

from fairwarning.driver_check.messages import Call, Gap, Outcome, Reply, Request, When
from fairwarning.drivers import Driver, plugins
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Alarm, DriverFailed, Found, LeaseLost

LINE_BYTES_MAX = 1 << 20  # asyncio's own limit is too short for an order of many instances.
READY = b"ready\n"
"""The first line that a node prints, before its replies."""


class HeldLease:
    """A lease that always holds, so the driver can tell only by the attempt's number that a call is
    late.
    """

    async def confirm(self, alarm: Alarm) -> None:
        return


class Stepped:
    """Awaits a coroutine, counts its gaps, and kills this process in one of them."""

    def __init__(
        self, work: Coroutine[Any, Any, Any], dies_at: Gap | None, on_first: Callable[[], None]
    ) -> None:
        self._work = work
        self._dies_at = dies_at
        self._on_first = on_first
        self.gaps = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        resume: Callable[[], Any] = lambda: self._work.send(None)  # noqa: E731
        while True:
            try:
                awaited = resume()
            except StopIteration as end:
                return end.value
            self.gaps += 1
            if self.gaps == 1:
                self._on_first()
            self._die_if(When.WAITING)
            try:
                yield awaited
            except BaseException as error:
                thrown = error
                resume = lambda: self._work.throw(thrown)  # noqa: B023, E731
            else:
                resume = lambda: self._work.send(None)  # noqa: E731
            self._die_if(When.RESUMED)

    def _die_if(self, when: When) -> None:
        if self._dies_at == Gap(number=self.gaps, when=when):
            os.kill(os.getpid(), signal.SIGKILL)


class Calls:
    def __init__(self, driver: Driver, clock: SystemClock) -> None:
        self._driver = driver
        self._clock = clock
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take(self, request: Request) -> None:
        if request.call is not None:
            task = asyncio.create_task(self._run(request.call))
            self._tasks[request.call.id] = task
        elif request.cancel is not None:
            task_or_none = self._tasks.get(request.cancel)
            if task_or_none is not None:
                task_or_none.cancel()

    async def _run(self, call: Call) -> None:
        alarm = self._clock.alarm()
        work: Coroutine[Any, Any, Found | None] = (
            self._driver.find(call.order)
            if call.is_find
            else self._driver.do(call.order, alarm, HeldLease())
        )
        stepped = Stepped(work, call.dies_at, lambda: _reply(call, Outcome.WAITS))
        found: Found | None = None
        reason = ""
        try:
            found = await stepped
        except asyncio.CancelledError:
            outcome = Outcome.CANCELLED
        except (DriverFailed, LeaseLost) as error:
            outcome, reason = Outcome.FAILED, str(error)
        except Exception as error:
            outcome, reason = Outcome.BROKE, f"{type(error).__name__}: {error}"
        else:
            outcome = Outcome.RETURNED
        finally:
            alarm.close()
            del self._tasks[call.id]
        if call.is_find and outcome is Outcome.RETURNED and not isinstance(found, Found):
            outcome, reason, found = Outcome.BROKE, f"find returned {found!r}, no Found", None
        _reply(call, outcome, found, reason, stepped.gaps)


def _reply(
    call: Call, outcome: Outcome, found: Found | None = None, reason: str = "", gaps: int = 0
) -> None:
    reply = Reply(id=call.id, outcome=outcome, found=found, reason=reason, gaps=gaps)
    # One small write to a pipe is never torn, also if the next thing is SIGKILL.
    os.write(1, msgspec.json.encode(reply) + b"\n")


async def main(name: str) -> None:
    clock = SystemClock()
    driver = plugins.installed()[name].driver
    assert driver is not None, "the caller has checked it"
    calls = Calls(driver(clock), clock)
    reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    os.write(1, READY)
    async for line in reader:
        calls.take(msgspec.json.decode(line, type=Request))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
