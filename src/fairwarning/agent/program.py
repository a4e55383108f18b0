"""The agent as a process: puts the parts together, listens to signals, and tells systemd."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fairwarning.agent import logs, whoami
from fairwarning.agent.actions.base import Context, Doer
from fairwarning.agent.clock import Clock, end
from fairwarning.agent.config import BadConfig
from fairwarning.agent.http_listener import Listener
from fairwarning.agent.metrics import Figures
from fairwarning.agent.model import Action, Config, Settings
from fairwarning.agent.orphans import take_over
from fairwarning.agent.runner import Runner
from fairwarning.agent.service import Service
from fairwarning.agent.state_file import Forgetful, StateFile
from fairwarning.agent.steps import Approve, Do, Forget, Undo
from fairwarning.client import AsyncScheduledEvents
from fairwarning.client.model import EventsUnavailable, Instance


def real_doer_of(settings: Settings) -> Doer:
    """Imported with the first event: an agent that only watches stays small."""
    from fairwarning.agent.actions.registry import DOERS  # noqa: PLC0415

    return DOERS[type(settings)]


async def run_agent(
    config: Config, reread: Callable[[], Config], *, is_dry: bool = False, is_once: bool = False
) -> None:
    """Until SIGTERM or SIGINT. Raises StateProblem, CannotListen, and EventsUnavailable if
    `is_once`. `reread` gives the config anew, and raises BadConfig or OSError."""
    state = Forgetful() if is_dry else StateFile(Path(config.state))
    memory = state.open()
    figures = Figures()
    make = DryService if is_dry else Service
    service = make(config.endpoint or None, seen=memory.seen, figures=figures)
    clock = Clock(service.now)
    try:
        if not is_dry:
            with _stops() as stopped:
                await take_over(Path(config.state))
            if stopped.is_set():
                return
        async with service:
            me = await _identify(config, service, is_once=is_once)
            if me is None:
                return
            runner = Runner(
                config=config,
                me=me,
                service=service,
                clock=clock,
                state=state,
                memory=memory,
                doer_of=dry_doer_of if is_dry else real_doer_of,
                figures=figures,
                pretended=PRETENDED if is_dry else (),
            )
            service.on_answer = runner.heard
            reloader = Reloader(runner, service, reread)
            # A dry run may go beside the service, which has the address.
            listen = None if is_dry else config.listen
            async with _around(runner, listen, figures, reloader):
                logs.say(f"watching {service.url} as {me.name}", name=me.name)
                await runner.run(_once(runner, service) if is_once else None)
    finally:
        state.close()


def _once(runner: Runner, service: Service) -> Callable[[], bool]:
    def is_done() -> bool:
        if not service.has_answered and service.trouble:
            raise EventsUnavailable(service.trouble)
        return service.has_answered and runner.is_idle and not service.seen.is_in_doubt

    return is_done


async def _identify(config: Config, service: Service, *, is_once: bool) -> Instance | None:
    """Asks until the service answers. None: a signal came first."""
    if config.name and not whoami.needs_more(config):
        return Instance(name=config.name)
    with _stops() as stopped:
        asking = asyncio.ensure_future(whoami.ask(service, gives_up=is_once))
        stopping = asyncio.ensure_future(stopped.wait())
        await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
        try:
            if not asking.done():
                return None
            me = asking.result()
            return replace(me, name=config.name or me.name)
        finally:
            await end(asking, stopping)


@contextlib.contextmanager
def _stops() -> Iterator[asyncio.Event]:
    """Set by the signals that end a service."""
    stopped = asyncio.Event()
    # Nobody may lose the agent by asking it to reload too early.
    with _on_signals(stopped.set, _too_early):
        yield stopped


def _too_early() -> None:
    logs.warn("the config was not reloaded: this VM is not known yet; ask again once it is watched")


@contextlib.contextmanager
def _on_signals(
    stop: Callable[[], None], reload: Callable[[], None] | None = None
) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    wanted = {signal.SIGTERM: stop, signal.SIGINT: stop}
    if reload is not None:
        wanted[signal.SIGHUP] = reload
    for number, act in wanted.items():
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)


class Reloader:
    def __init__(
        self, runner: Runner, service: AsyncScheduledEvents, reread: Callable[[], Config]
    ) -> None:
        """`reread` raises BadConfig or OSError."""
        self._runner = runner
        self._service = service
        self._reread = reread
        self._asking: asyncio.Task[None] | None = None

    def reload(self) -> None:
        """At once; or, if the config needs to know more of this VM than the name, as soon as the
        service has said it: a rule must not be passed over only because a tag is not known."""
        try:
            config = self._reread()
        except (BadConfig, OSError) as problem:
            logs.warn(f"the config was not reloaded, and the old one stays: {problem}")
            return
        self.stop()
        if whoami.needs_more(config):
            self._asking = asyncio.create_task(self._ask_first(config))
        else:
            self._take_over(config, self._runner.me)

    def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask_first(self, config: Config) -> None:
        me = await whoami.ask(self._service)
        self._take_over(config, replace(me, name=self._runner.me.name))

    def _take_over(self, config: Config, me: Instance) -> None:
        before = self._runner.config
        self._runner.reload(config, me)
        logs.say("the config was reloaded; it counts for events that are seen from now on")
        if fixed := [name for name in _FIXED if getattr(config, name) != getattr(before, name)]:
            logs.warn(f"a change of {', '.join(fixed)} needs a restart")


@contextlib.asynccontextmanager
async def _around(
    runner: Runner, listen: tuple[str, int] | None, figures: Figures, reloader: Reloader
) -> AsyncIterator[None]:
    """Probes, signals and systemd, for as long as the runner runs."""
    listener = Listener(figures, runner.is_drained)
    if listen is not None:
        await listener.start(*listen)

    def stop() -> None:
        logs.say("stopping; what is drained stays so, and the state is kept")
        notify(STOPPING="1", STATUS="stopping")
        runner.stop()

    barking = asyncio.create_task(_bark())
    try:
        with _on_signals(stop, reloader.reload):
            notify(READY="1", STATUS="watching")
            yield
    finally:
        reloader.stop()
        await end(barking)
        await listener.stop()


async def _bark() -> None:
    """Stops with the event loop, and then systemd knows that something is wrong."""
    every_s = watchdog_s()
    while every_s is not None:
        notify(WATCHDOG="1")
        await asyncio.sleep(every_s)


# The config read anew while the agent runs.
_FIXED = ("endpoint", "name", "state", "listen")
"""What a reload cannot change."""
# A dry run: everything is decided and told, and nothing is done.
PRETENDED = (Do, Undo, Approve, Forget)
"""Of which nobody may say that they are done."""


class DryDoer:
    async def do(self, action: Action, context: Context) -> None:
        _say("would do", action, context)

    async def undo(self, action: Action, context: Context) -> None:
        _say("would undo", action, context)


def _say(word: str, action: Action, context: Context) -> None:
    title = context.render(action.title)
    logs.say(f"{word}: {title}", event=context.event.id, action=title)


def dry_doer_of(_: Settings) -> Doer:
    return DryDoer()


class DryService(Service):
    """Polls as ever, and changes nothing at the service."""

    async def approve(self, *event_ids: str) -> None:
        for id in event_ids:
            logs.say("would approve", event=id)

    async def report(self, event_id: str) -> tuple[str, ...]:
        logs.say("would tell the other VMs that this one is ready", event=event_id)
        return await self.waiting(event_id)


# Tells systemd how the service is, if it was systemd that started it.
def notify(**states: str) -> None:
    """`notify(READY="1", STATUS="watching")`."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    path = "\0" + address[1:] if address.startswith("@") else address
    message = "\n".join(f"{name}={value}" for name, value in states.items())
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        # A message may be lost, but nothing here may wait for whoever should read it.
        sending.setblocking(False)
        sending.sendto(message.encode(), path)


def watchdog_s() -> float | None:
    """How often systemd wants to hear of us; None: never."""
    is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    value = os.environ.get("WATCHDOG_USEC", "")
    return int(value) / 2_000_000 if is_ours and value.isdigit() and int(value) else None
