"""One whole check: the audition, the stories, the report."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from fairwarning.handler_check.cases import AUDITION, STORIES
from fairwarning.handler_check.model import Order, Point, Report, Result, Verdict
from fairwarning.handler_check.namespace import ENDPOINT, NoNamespaces, new_network


class CannotCheck(Exception):
    """The handler could not be started, or never asked. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user asked for."""

    command: tuple[str, ...]
    stories: tuple[str, ...]
    patience_s: float
    jobs: int
    approves: bool
    namespace: bool | None
    """None: if this machine lets us."""


def check(wish: Wish, tell: Callable[[Result], None]) -> Report:
    """`tell` hears of each story as it ends. Raises CannotCheck and NoNamespaces."""
    began = time.monotonic()
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if shutil.which(wish.command[0]) is None:
        raise CannotCheck(f"there is no program {wish.command[0]!r}; give the command after `--`")
    in_namespace = _has_namespace(wish.namespace)
    audience = Audience()
    try:
        _hear(audience, wish, in_namespace)
        orders = [_order(wish, name, in_namespace) for name in wish.stories]
        results = audience.see_all(orders, wish.jobs, tell)
    finally:
        audience.stop()
    return Report(
        command=wish.command,
        at=at,
        network=f"at {ENDPOINT}, in a network of its own" if in_namespace else "by its base URL",
        took_s=round(time.monotonic() - began, 1),
        results=tuple(results),
    )


def _has_namespace(wanted: bool | None) -> bool:
    if wanted is False:
        return False
    try:
        new_network()
    except NoNamespaces:
        if wanted:
            raise
        return False
    return True


def _order(wish: Wish, story: str, in_namespace: bool) -> Order:
    return Order(
        story=story,
        command=wish.command,
        patience_s=wish.patience_s,
        approves=wish.approves,
        in_namespace=in_namespace,
    )


class Audience:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_over = False

    def see(self, order: Order) -> Result:
        """Plays it to its end."""
        began = time.monotonic()
        limit_s = _STORY_PATIENCES_MAX * order.patience_s + _STORY_S_MIN
        # It ends when its input does, so it cannot outlive us, however we end.
        theirs, ours = os.pipe()
        try:
            process = self._start(order, theirs)
            said, trouble = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _stop(process)
            said, trouble = b"", b"it came to no end"
        finally:
            os.close(ours)
            os.close(theirs)
        with self._lock:
            self._running.discard(process)
        try:
            return msgspec.json.decode(said, type=Result)
        except msgspec.DecodeError:
            text = trouble.decode("utf-8", "replace").strip().splitlines()
            return _broken(order, text[-1] if text else "", time.monotonic() - began)

    def see_all(
        self, orders: Sequence[Order], jobs: int, tell: Callable[[Result], None]
    ) -> list[Result]:
        """In the order of `orders`; `tell` hears of each as it ends."""
        with self._pool(jobs) as pool:
            going: dict[Future[Result], int] = {
                pool.submit(self.see, order): number for number, order in enumerate(orders)
            }
            found: dict[int, Result] = {}
            while going:
                done, _ = wait(going, return_when=FIRST_COMPLETED)
                for each in done:
                    found[going.pop(each)] = each.result()
                    tell(each.result())
            return [found[number] for number in sorted(found)]

    def stop(self) -> None:
        """Ends every process of every story, with their handlers."""
        with self._lock:
            self._is_over = True
            running = [*self._running]
        for process in running:
            process.terminate()
        for process in running:
            _stop(process)

    @contextlib.contextmanager
    def _pool(self, jobs: int) -> Iterator[ThreadPoolExecutor]:
        pool = ThreadPoolExecutor(jobs)
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self.stop()
            raise
        finally:
            pool.shutdown()

    def _start(self, order: Order, stdin: int) -> "subprocess.Popen[bytes]":
        way = new_network() if order.in_namespace else ()
        told = msgspec.json.encode(order).decode()
        with self._lock:
            if self._is_over:
                raise KeyboardInterrupt
            process = subprocess.Popen(  # noqa: S603
                [*way, sys.executable, "-m", "fairwarning.handler_check.worker", told],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
            return process


def _hear(audience: Audience, wish: Wish, in_namespace: bool) -> None:
    """Whoever cannot find the server would fail every story, and for one reason only."""
    result = audience.see(_order(wish, "", in_namespace))
    if result.verdict is not Verdict.FAILED:
        return
    point = result.points[0]
    said = f"\n{_indented(result.output)}" if result.output else ""
    where = (
        f"It finds the endpoint at http://{ENDPOINT} or in FAIRWARNING_METADATA_URL; nothing else "
        "can be reached from there, unless you give --no-namespace"
        if in_namespace
        else "It must use the URL in FAIRWARNING_METADATA_URL, or in the place of {url} in its "
        f"command, instead of http://{ENDPOINT}"
    )
    raise CannotCheck(f"the handler should {point.should}, and {point.did}. {where}.{said}")


def _indented(text: str) -> str:
    return "\n".join(f"  {each}" for each in text.splitlines())


# Plays many stories at once, each in a process of its own, and leaves none behind.
_STOP_S_MAX = 5.0
_STORY_PATIENCES_MAX = 10
_STORY_S_MIN = 60.0


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_S_MAX)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _broken(order: Order, trouble: str, took_s: float) -> Result:
    """Our own process failed. That is told, and never taken for the handler's doing."""
    story = STORIES.get(order.story, AUDITION)
    did = f"the check itself broke: {trouble}; this is a bug of Fairwarning or of this machine"
    return Result(
        story=story.name,
        title=story.title,
        why=story.why,
        points=(Point(should="be judged", did=did, verdict=Verdict.FAILED),),
        took_s=round(took_s, 2),
    )
