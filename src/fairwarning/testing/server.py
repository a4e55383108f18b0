"""The class `Server`, which a test controls step by step, and the function `server`."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import Struct

from fairwarning.core.faults import Fault, FaultKind, Part
from fairwarning.core.instants import Instant
from fairwarning.core.model import OperationKind
from fairwarning.metadata.request_watchers import ObservedRequest, RefusedRequest
from fairwarning.metadata.settings import EndpointRules
from fairwarning.operator_api.schemas import Event
from fairwarning.testing.arguments import Span, described, one_of, span_ms, type_of, with_server
from fairwarning.testing.server_loop import START, ServerLoop, TimedRequest, names, read_fleet
from fairwarning.testing.server_thread import Background, Changes
from fairwarning.testing.virtual_machine import Vm

T = TypeVar("T")
Address = tuple[str, int]
WAIT_S = 10.0  # A handler that polls each second has acted several times by then.


class Approval(Struct, frozen=True, kw_only=True):
    event: str
    by: str
    """The actor that approved, such as `instance:web-0`, `operator:test` or `policy:…`."""
    at: str


class SetFault:
    """A fault that is set. As a context manager, it clears the fault at the end."""

    def __init__(self, server: "Server", fault: Fault) -> None:
        self._server = server
        self.id = fault.id
        self.kind = fault.kind

    def clear(self) -> None:
        self._server.clear_faults(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


class Server:
    """A server whose virtual clock stands still until `advance` moves it."""

    def __init__(
        self,
        *,
        fleet: str | Path | dict[str, Any] | None = None,
        seed: int = 0,
        start: datetime | None = None,
        port: int = 0,
        newest_version: str = "",
        unknown_version_status: int = 400,
        holds_polls: bool = True,
        also: Sequence[Address] = (),
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start a server.

        `fleet` is the path of a fleet file, its text, or a mapping; None means the starter fleet.
        `seed` makes ids and random choices repeatable. `start` is the first time of the clock.
        `newest_version` makes newer api-versions unknown, which are answered with
        `unknown_version_status`. If `holds_polls` is false, the endpoint
        has no long-polls, like Azure. The endpoint listens on 127.0.0.1 at `port`, where 0 picks
        a free port, and on the addresses in `also`. `seconds` is the clock that requests are
        timed with.
        """
        self._changes = Changes()
        self._background = Background()
        rules = EndpointRules(
            newest_version=newest_version,
            unknown_version_status=unknown_version_status,
            holds_polls=holds_polls,
        )
        try:
            stage = self._set_up(fleet, seed, start, [("127.0.0.1", port), *also], rules, seconds)
            self._loop = self._background.call(stage)
        except BaseException:
            self._background.stop()
            raise
        self.url = self._loop.node.metadata_urls[0]
        """The start of the URLs of all VMs. A handler needs `vm(NAME).url`."""
        self.control_url = self._loop.node.control_url

    async def _set_up(
        self,
        fleet: str | Path | dict[str, Any] | None,
        seed: int,
        start: datetime | None,
        metadata: Sequence[Address],
        rules: EndpointRules,
        seconds: Callable[[], float],
    ) -> ServerLoop:
        stage = ServerLoop(
            fleet=read_fleet(fleet),
            seed=seed,
            start=START if start is None else Instant(int(start.timestamp() * 1000)),
            metadata=metadata,
            rules=rules,
            on_change=self._changes.note,
            seconds=seconds,
        )
        await stage.start()
        return stage

    def stop(self) -> None:
        try:
            self._background.call(self._loop.stop())
        finally:
            self._background.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def vm(self, name: str) -> Vm:
        """Return a VM of the fleet. Raises `LookupError` if the fleet has no such VM."""
        self._background.call(self._loop.check_name(name))
        return Vm(name, self.url)

    @property
    def now(self) -> datetime:
        return self._background.call(self._loop.now())

    def advance(
        self,
        by: Span = 0,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Move the clock forward by the sum of all arguments.

        Timers fire in order, and all that is due has happened on return. Raises `ValueError` if
        the sum is negative.
        """
        more = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        by_ms = span_ms(by) + span_ms(more)
        if by_ms < 0:
            raise ValueError("time goes forward only")
        self._background.call(self._loop.advance(by_ms))

    def schedule(
        self,
        type: str,
        *targets: str,
        notice: Span | None = None,
        not_before: datetime | None = None,
        duration: Span | None = None,
        description: str | None = None,
        already_happened: bool = False,
    ) -> Event:
        """Announce a platform event. In a test fleet, the notice may be short."""
        instant = None if not_before is None else Instant(int(not_before.timestamp() * 1000))
        work = self._loop.schedule(
            type_of(type),
            targets,
            notice_ms=None if notice is None else span_ms(notice),
            not_before_ms=instant,
            duration_s=None if duration is None else span_ms(duration) // 1000,
            description=description,
            already_happened=already_happened,
        )
        return self._background.call(work)

    def restart(self, instance: str) -> Event:
        return self._operate(OperationKind.RESTART, instance)

    def redeploy(self, instance: str) -> Event:
        return self._operate(OperationKind.REDEPLOY, instance)

    def delete(self, instance: str) -> Event:
        return self._operate(OperationKind.DELETE, instance)

    def evict(self, instance: str) -> Event:
        return self._operate(OperationKind.EVICT, instance)

    def approve(self, event: str | Event) -> Event:
        """Approve an event as an operator. To approve as a VM, use `vm(NAME).approve(ID)`."""
        return self._background.call(self._loop.approve(_id(event)))

    def cancel(self, event: str | Event) -> Event:
        return self._background.call(self._loop.cancel(_id(event)))

    def event(self, event: str | Event) -> Event:
        """Return the event as it is now, with its timeline."""
        return self._background.call(self._loop.event(_id(event)))

    def events(self, *, all: bool = False) -> list[Event]:
        """Return the events that are not over, or all events if `all` is true, oldest first."""
        return self._background.call(self._loop.events(all=all))

    def approvals(self) -> list[Approval]:
        """Return the approvals of all events, in the order of the events."""
        return [
            Approval(event=event.id, by=each.by, at=each.at)
            for event in self.events(all=True)
            for each in event.approvals
        ]

    def requests(
        self, instance: str | None = None, *, kind: str | None = None
    ) -> list[ObservedRequest]:
        """Return the requests of VMs to the endpoint, oldest first.

        `kind` is `events` (a poll), `approve`, `instance` or `versions`. The list leaves out
        malformed requests, such as one without `Metadata: true`.
        """
        return [each for _, each in self.timed_requests(instance, kind=kind)]

    def timed_requests(
        self, instance: str | None = None, *, kind: str | None = None
    ) -> list[TimedRequest]:
        """Return the same as `requests`, each with the real time at which it came."""
        return [
            each
            for each in [*self._loop.asked]
            if instance in (None, each.request.instance) and kind in (None, each.request.kind)
        ]

    def refused_requests(self) -> list[RefusedRequest]:
        """Return the requests that were refused as malformed, oldest first."""
        return [*self._loop.refused]

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Refuse all connections to the metadata endpoint until the end of the block."""
        self._background.call(self._loop.set_reachable(False))
        try:
            yield
        finally:
            self._background.call(self._loop.set_reachable(True))

    def fault(
        self,
        kind: str,
        instances: str | Sequence[str] | None = None,
        *,
        count: int | None = None,
        probability: float = 1.0,
        on: str = "poll",
        status: int = 503,
        delay: Span = 5,
        after: Span = 0,
        lasting: Span | None = None,
    ) -> SetFault:
        """Make the endpoint misbehave, as in `fault("status", "web-0", status=500, count=3)`.

        `after` and `lasting` are times of the server's clock: when it begins, and how long it
        lasts. A stale document is always the one of now.
        """
        wanted = Fault(
            id="",
            kind=one_of(FaultKind, kind, "kind of fault"),
            instances=names(instances),
            on=one_of(Part, on, "kind of request"),
            count=count,
            probability=probability,
            status=status,
            delay_ms=span_ms(delay),
        )
        for_ms = None if lasting is None else span_ms(lasting)
        work = self._loop.set_fault(wanted, span_ms(after), for_ms)
        return SetFault(self, self._background.call(work))

    def clear_faults(self, id: str | None = None) -> None:
        self._background.call(self._loop.clear_faults(id))

    def wait_until(self, condition: Callable[..., T], *, timeout: float = WAIT_S) -> T:
        """Wait until `condition()` is true, and return its value.

        The condition is checked again after each request of a VM and each change. `timeout` is
        in real seconds, because the handler works in real time. Raises `AssertionError` if the
        time is over.
        """
        ends_s = time.monotonic() + timeout
        ask = with_server(condition, self)
        while True:
            count = self._changes.count
            if found := ask():
                return found
            if not self._changes.wait_beyond(count, ends_s - time.monotonic()):
                raise AssertionError(self._in_vain(condition, timeout) + _hint())

    async def until(self, condition: Callable[..., T], *, timeout: float = WAIT_S) -> T:  # noqa: ASYNC109
        """Wait like `wait_until`, but without blocking the event loop of the caller."""
        ends_s = time.monotonic() + timeout
        ask = with_server(condition, self)
        while True:
            count = self._changes.count
            if found := ask():
                return found
            if not await self._changes.until_beyond(count, ends_s - time.monotonic()):
                raise AssertionError(self._in_vain(condition, timeout))

    def nudge(self) -> None:
        """Make every `wait_until` check again. Call it when something outside has changed."""
        self._changes.note()

    def _operate(self, kind: OperationKind, instance: str) -> Event:
        return self._background.call(self._loop.operate(kind, instance))

    def _in_vain(self, condition: Callable[..., object], timeout: float) -> str:
        entries = self._background.call(self._loop.recent_history())
        happened = "\n  ".join(entries or ["nothing"])
        return (
            f"{described(condition)}: not so within {timeout:g} s. What has happened so far:\n"
            f"  {happened}"
        )


@contextmanager
def server(
    *,
    fleet: str | Path | dict[str, Any] | None = None,
    seed: int = 0,
    start: datetime | None = None,
    port: int = 0,
    newest_version: str = "",
    holds_polls: bool = True,
) -> Iterator[Server]:
    """Run a `Server`, and stop it at the end of the block."""
    running = Server(
        fleet=fleet,
        seed=seed,
        start=start,
        port=port,
        newest_version=newest_version,
        holds_polls=holds_polls,
    )
    with running:
        yield running


def _id(event: str | Event) -> str:
    return event if isinstance(event, str) else event.id


def _hint() -> str:
    """Return a hint if the caller is a coroutine, because `wait_until` blocks its event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ""
    return "\nThis test is a coroutine: `await fairwarning.until(...)` lets its handler run."
