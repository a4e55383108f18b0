"""Runs an event loop in a thread, so that code without coroutines can control a server."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

import uvloop

T = TypeVar("T")
CALL_S_MAX = 60  # No call of a test takes so long unless it hangs.


class Background:
    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fairwarning", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine in the loop and return its result. Raises `TimeoutError` after 60 s."""
        assert threading.current_thread() is not self._thread, "this would wait for itself"
        return self.submit(work).result(CALL_S_MAX)

    def submit(self, work: Coroutine[object, object, T]) -> "concurrent.futures.Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Changes:
    """Counts changes, and wakes up waiting threads and coroutines at each change."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._listeners: set[Callable[[], None]] = set()

    @property
    def count(self) -> int:
        return self._count

    def note(self, *_: object) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()
            listeners = [*self._listeners]
        for listener in listeners:
            listener()

    def wait_beyond(self, count: int, timeout_s: float) -> bool:
        with self._condition:
            return self._condition.wait_for(lambda: self._count > count, max(timeout_s, 0))

    async def until_beyond(self, count: int, timeout_s: float) -> bool:
        """Wait like `wait_beyond`, but without blocking the event loop."""
        loop, happened = asyncio.get_running_loop(), asyncio.Event()

        def listener() -> None:
            loop.call_soon_threadsafe(happened.set)

        with self._condition:
            if self._count > count:
                return True
            self._listeners.add(listener)
        try:
            async with asyncio.timeout(max(timeout_s, 0)):
                await happened.wait()
            return True
        except TimeoutError:
            return False
        finally:
            with self._condition:
                self._listeners.discard(listener)
