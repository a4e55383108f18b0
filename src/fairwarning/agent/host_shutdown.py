"""Makes a shutdown of the host itself an event of the agent, so that the host is drained first.

While the agent runs, it holds a delay lock of systemd-logind. When a shutdown begins, this module
shows the runner an event of type Reboot, which no service knows. The runner drains for it by the
rules. When nothing is left to do, the lock is released and the shutdown goes on. When the shutdown
is called off, or at the agent's next start, the event is gone, and so the runner undoes the drain.
"""

import asyncio
import contextlib
import importlib.util
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from fairwarning.agent import logs
from fairwarning.agent.clock import Clock, end
from fairwarning.agent.config.model import Config, Phase
from fairwarning.agent.plan import is_done
from fairwarning.agent.rules import choose
from fairwarning.agent.runner import Runner
from fairwarning.client.model import Event, Instance, Status
from fairwarning.common.durations import human_s

TYPE = "Reboot"
DESCRIPTION = "Host shutdown, announced by systemd-logind."
WHY = "the drain of this VM"
RETRY_S = 5.0
"""How long to wait before logind is asked again, if it could not be reached."""
NO_PACKAGE = (
    "host_shutdown needs dbus-fast; install the extra `logind`: pip install "
    "'fairwarning-client[logind]', or 'fairwarning[logind]' beside the server"
)


class NoLogind(Exception):
    """logind cannot be asked, or it refuses. The message says why."""


class Login(Protocol):
    """The part of logind's client that is used here. The methods that ask raise NoLogind."""

    async def inhibit(self, why: str) -> int:
        """Take a delay lock, and return its file. Closing the file releases it."""

    async def delay_max_s(self) -> float:
        """Return how long a shutdown waits for delay locks."""

    async def is_shutting_down(self) -> bool:
        """Return whether a shutdown has begun and was not called off."""

    async def wait_closed(self) -> None:
        """Wait until the connection is lost."""

    def close(self) -> None:
        """Close the connection. A lock stays."""


Connect = Callable[[Callable[[], None]], Awaitable[Login]]
"""Connects to logind. It takes what is called when a shutdown begins or is called off."""


async def connect_logind(on_signal: Callable[[], None]) -> Login:
    """Connect to the real logind. Raises NoLogind."""
    if not is_available():
        raise NoLogind(NO_PACKAGE)
    from fairwarning.agent.logind import Logind  # noqa: PLC0415  (only if it is asked for)

    return await Logind.connect(on_signal)


def is_available() -> bool:
    return importlib.util.find_spec("dbus_fast") is not None


def shutdown_event(me: Instance, now: datetime, delay_s: float) -> Event:
    """Return the event of a shutdown that begins now and can be delayed for so long."""
    return Event(
        id=f"HOST-SHUTDOWN-{uuid.uuid4()}".upper(),
        type=TYPE,
        status=Status.SCHEDULED,
        resources=(me.name,),
        not_before=now + timedelta(seconds=delay_s),
        description=DESCRIPTION,
        source="User",
        duration_s=None,
    )


def drain_s_max(config: Config, event: Event, me: Instance, now: datetime) -> tuple[str, float]:
    """Return the name of the rule that the event takes, and how long its drain may take by the
    time-outs of its actions. Without a rule, both are empty.
    """
    rule = choose(config, event, me, now)
    if rule is None:
        return "", 0.0
    actions = (*rule.scheduled, *rule.started)
    return rule.name, sum(each.timeout_s * (each.retries + 1) for each in actions)


def too_short(config: Config, me: Instance, now: datetime, delay_s: float) -> str:
    """Return a warning if logind waits less long than the drain may take, else an empty text."""
    rule, needed_s = drain_s_max(config, shutdown_event(me, now, delay_s), me, now)
    if not rule:
        return f"no rule fits a {TYPE} of this VM, so a shutdown of the host drains nothing"
    if needed_s <= delay_s:
        return ""
    return (
        f"logind lets a shutdown wait {human_s(delay_s)} (InhibitDelayMaxSec), but by their "
        f"time-outs the actions of rule {rule!r} may take {human_s(needed_s)}; see docs/agent.md"
    )


class HostShutdown:
    def __init__(self, runner: Runner, clock: Clock, connect: Connect = connect_logind) -> None:
        self._runner = runner
        self._clock = clock
        self._connect = connect
        self._login: Login | None = None
        self._lock: int | None = None
        self._event: Event | None = None
        """The event of the shutdown that is under way."""
        self._signal = asyncio.Event()
        self.status = ""
        """Whether a shutdown waits for the drain, in words. `agent status` shows it."""
        self.on_status: Callable[[], None] = lambda: None
        runner.on_settled = self._on_settled

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Hold the lock and drain for shutdowns during the context.

        logind has answered when the context begins, or cannot be asked. So the runner knows whether
        a shutdown that an earlier agent has seen still goes on.
        """
        await self._open()
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            await end(task)
            self._release()
            if self._login is not None:
                self._login.close()

    async def _follow(self) -> None:
        while True:
            if self._login is None:
                await asyncio.sleep(RETRY_S)
                await self._open()
                continue
            closed = asyncio.ensure_future(self._login.wait_closed())
            try:
                await self._look_at_signals(self._login, closed)
            except NoLogind as problem:
                self._lose(str(problem))
            finally:
                await end(closed)

    async def _look_at_signals(self, login: Login, closed: asyncio.Future[None]) -> None:
        """Look at each signal until the connection is lost, which raises NoLogind."""
        while True:
            signalled = asyncio.ensure_future(self._signal.wait())
            try:
                await asyncio.wait((closed, signalled), return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end(signalled)
            if closed.done():
                raise NoLogind("the connection to the system's bus was lost")
            self._signal.clear()
            await self._look(login)

    async def _open(self) -> None:
        try:
            self._login = await self._connect(self._signal.set)
            await self._look(self._login)
        except NoLogind as problem:
            self._lose(str(problem))

    async def _look(self, login: Login) -> None:
        """Ask logind what is so, because a signal could come from anybody."""
        delay_s = await login.delay_max_s()
        if await login.is_shutting_down():
            self._begin(delay_s)
            return
        if self._event is not None:
            logs.say("the shutdown of the host was called off", event=self._event.id)
            self._show(None)
        if self._lock is None:
            self._lock = await login.inhibit(WHY)
        runner = self._runner
        warning = too_short(runner.config, runner.me, self._clock.now(), delay_s)
        waits = f"a shutdown of the host waits for the drain, at most {human_s(delay_s)}"
        self._say(f"{waits}; {warning}" if warning else waits, is_warning=bool(warning))

    def _begin(self, delay_s: float) -> None:
        if self._event is not None:
            return
        earlier = self._runner.memory.unfinished_local
        if earlier:
            # The agent was restarted in the middle. To undo now would be the opposite of a drain.
            self._show(next(iter(earlier.values())).event)
        elif self._lock is not None:
            event = shutdown_event(self._runner.me, self._clock.now(), delay_s)
            logs.say(f"the host shuts down, and waits {human_s(delay_s)} at most", event=event.id)
            self._show(event)

    def _show(self, event: Event | None) -> None:
        self._event = event
        self._runner.show_local({} if event is None else {event.id: event})

    def _on_settled(self) -> bool:
        """Go on with the shutdown if nothing is left to do for it. Return whether that may have
        given the runner something to do.
        """
        event = self._event
        record = None if event is None else self._runner.memory.records.get(event.id)
        if event is None or record is None or not is_done(record, record.phase):
            return False
        if record.phase is Phase.SCHEDULED:
            self._show(replace(event, status=Status.STARTED, not_before=None))
            return True
        if self._lock is not None:
            logs.say("nothing is left to drain, so the shutdown goes on", event=event.id)
            self._release()
        return False

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _lose(self, why: str) -> None:
        if self._login is not None:
            self._login.close()
            self._login = None
        # While the host shuts down, the bus ends too, and the lock is no longer needed.
        if self._event is None:
            self._say(f"a shutdown of the host does not wait for the drain: {why}", is_warning=True)

    def _say(self, status: str, *, is_warning: bool) -> None:
        if status != self.status:
            (logs.warn if is_warning else logs.say)(status)
        self.status = status
        self.on_status()
