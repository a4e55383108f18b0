"""`server()`: Fairwarning in this process, driven step by step by a test."""

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
from fairwarning.metadata.request_watchers import ObservedRequest
from fairwarning.metadata.settings import EndpointRules
from fairwarning.operator_api.schemas import Event
from fairwarning.testing.arguments import (
    Span,
    described,
    one_of,
    span_ms,
    type_of,
    with_server,
)
from fairwarning.testing.server_loop import START, Stage, names, read_fleet
from fairwarning.testing.server_thread import Background, Changes
from fairwarning.testing.virtual_machine import Vm

T = TypeVar("T")
Address = tuple[str, int]
WAIT_S = 10.0


class Approval(Struct, frozen=True, kw_only=True):
    event: str
    by: str
    """`instance:web-0`, `operator:test`, `policy:…`."""
    at: str


class SetFault:
    """A fault that was set. Use it with `with`, and it is gone afterwards."""

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
    """All times are those of its own clock, which stands still until `advance` moves it."""

    def __init__(
        self,
        *,
        fleet: str | Path | dict[str, Any] | None = None,
        seed: int = 0,
        start: datetime | None = None,
        port: int = 0,
        newest_version: str = "",
        holds_polls: bool = True,
        also: Sequence[Address] = (),
    ) -> None:
        """`fleet`: a fleet file, its text or a mapping; without it, the starter fleet.

        `seed` settles ids and chance, `start` the first instant. `newest_version` makes younger
        api-versions unknown, and without `holds_polls` the endpoint has no long-poll, like
        Azure's own. `also`: addresses to listen on beside 127.0.0.1 and `port`.
        """
        self._changes = Changes()
        self._background = Background()
        rules = EndpointRules(newest_version=newest_version, holds_polls=holds_polls)
        try:
            stage = self._set_up(fleet, seed, start, [("127.0.0.1", port), *also], rules)
            self._stage = self._background.call(stage)
        except BaseException:
            self._background.stop()
            raise
        self.url = self._stage.node.metadata_urls[0]
        """The base of every VM's own URL; `vm(NAME).url` is what a handler wants."""
        self.control_url = self._stage.node.control_url

    async def _set_up(
        self,
        fleet: str | Path | dict[str, Any] | None,
        seed: int,
        start: datetime | None,
        metadata: Sequence[Address],
        rules: EndpointRules,
    ) -> Stage:
        stage = Stage(
            fleet=read_fleet(fleet),
            seed=seed,
            start=START if start is None else Instant(int(start.timestamp() * 1000)),
            metadata=metadata,
            rules=rules,
            on_change=self._changes.note,
        )
        await stage.start()
        return stage

    def stop(self) -> None:
        try:
            self._background.call(self._stage.stop())
        finally:
            self._background.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def vm(self, name: str) -> Vm:
        """One of the fleet's VMs: its URL for a handler, and what the handler would read there."""
        self._background.call(self._stage.check_name(name))
        return Vm(name, self.url)

    @property
    def now(self) -> datetime:
        return self._background.call(self._stage.now())

    def advance(
        self,
        by: Span = 0,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Every timer on the way fires in order; returns when all that is due has happened."""
        more = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        by_ms = span_ms(by) + span_ms(more)
        if by_ms < 0:
            raise ValueError("time goes forward only")
        self._background.call(self._stage.advance(by_ms))

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
        """Announces a platform event. This is a test fleet, so the notice may be short."""
        instant = None if not_before is None else Instant(int(not_before.timestamp() * 1000))
        work = self._stage.schedule(
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
        """As an operator; a VM approves with `vm(NAME).approve(ID)`."""
        return self._background.call(self._stage.approve(_id(event)))

    def cancel(self, event: str | Event) -> Event:
        return self._background.call(self._stage.cancel(_id(event)))

    def event(self, event: str | Event) -> Event:
        """As it is now, with its timeline."""
        return self._background.call(self._stage.event(_id(event)))

    def events(self, *, all: bool = False) -> list[Event]:
        """Those that are not over, oldest first; with `all`, every one that ever was."""
        return self._background.call(self._stage.events(all=all))

    def approvals(self) -> list[Approval]:
        """Who has agreed to what, in the order of the events."""
        return [
            Approval(event=event.id, by=each.by, at=each.at)
            for event in self.events(all=True)
            for each in event.approvals
        ]

    def requests(
        self, instance: str | None = None, *, kind: str | None = None
    ) -> list[ObservedRequest]:
        """What VMs have asked of the endpoint, oldest first.

        `kind`: `events` (a poll), `approve`, `instance` or `versions`. What was refused for its
        form, as a request without `Metadata: true`, is not among them.
        """
        return [
            each
            for each in [*self._stage.asked]
            if instance in (None, each.instance) and kind in (None, each.kind)
        ]

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
        lasting: Span | None = None,
    ) -> SetFault:
        """Makes the endpoint misbehave: `fault("status", "web-0", status=500, count=3)`."""
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
        return SetFault(self, self._background.call(self._stage.set_fault(wanted, for_ms)))

    def clear_faults(self, id: str | None = None) -> None:
        self._background.call(self._stage.clear_faults(id))

    def wait_until(self, condition: Callable[..., T], *, timeout: float = WAIT_S) -> T:
        """Returns what `condition()` gives as soon as that is true.

        It is asked again whenever a VM asks or anything changes; nothing sleeps. `timeout` is
        in real seconds, because it is the handler's own work that is waited for.
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
        """`wait_until` for a test that is a coroutine: its event loop goes on meanwhile."""
        ends_s = time.monotonic() + timeout
        ask = with_server(condition, self)
        while True:
            count = self._changes.count
            if found := ask():
                return found
            if not await self._changes.until_beyond(count, ends_s - time.monotonic()):
                raise AssertionError(self._in_vain(condition, timeout))

    def nudge(self) -> None:
        """Something outside has changed: whoever is in `wait_until` looks again."""
        self._changes.note()

    def _operate(self, kind: OperationKind, instance: str) -> Event:
        return self._background.call(self._stage.operate(kind, instance))

    def _in_vain(self, condition: Callable[..., object], timeout: float) -> str:
        story = self._background.call(self._stage.story())
        happened = "\n  ".join(story or ["nothing"])
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
    """A `Server` that is stopped at the end of the block."""
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
    """A handler in the event loop that this call holds up could not do anything."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ""
    return "\nThis test is a coroutine: `await fairwarning.until(...)` lets its handler run."
