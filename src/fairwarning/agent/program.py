"""Runs the agent as a process, with signals, reload, dry run and systemd notifications."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from fairwarning.agent import logs, whoami
from fairwarning.agent.actions.base import ActionHandler, Context
from fairwarning.agent.client import AgentClient
from fairwarning.agent.clock import Clock, end
from fairwarning.agent.config.model import Action, Config, Settings
from fairwarning.agent.config.table import BadConfig
from fairwarning.agent.host_shutdown import HostShutdown
from fairwarning.agent.http_listener import Listener
from fairwarning.agent.leftover_processes import take_over
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.run_file import RunFile
from fairwarning.agent.runner import Runner
from fairwarning.agent.state_file import NoStateFile, StateFile
from fairwarning.agent.steps import Approve, Do, Forget, Undo
from fairwarning.client import AsyncScheduledEvents
from fairwarning.client.model import EventsUnavailable, Instance
from fairwarning.common.systemd import notify, ping_watchdog


def real_handler_of(settings: Settings) -> ActionHandler:
    """Return the handler of a kind of action. It is imported late, so an idle agent is small."""
    from fairwarning.agent.actions.registry import HANDLERS  # noqa: PLC0415

    return HANDLERS[type(settings)]


async def run_agent(
    config: Config, reread: Callable[[], Config], *, is_dry: bool = False, is_once: bool = False
) -> None:
    """Run the agent until SIGTERM or SIGINT, or with `is_once` until nothing is left to do.

    `reread` reads the config again for a reload, and may raise BadConfig or OSError. With `is_dry`,
    the agent only logs what it would do. Raises StateProblem if the state file cannot be used,
    CannotListen if `listen` cannot, and, with `is_once`, EventsUnavailable if the service fails.
    """
    state = NoStateFile() if is_dry else StateFile(Path(config.state))
    memory = state.open()
    metrics = Metrics()
    make = DryClient if is_dry else AgentClient
    service = make(config.endpoint or None, seen=memory.seen, metrics=metrics)
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
                handler_of=dry_handler_of if is_dry else real_handler_of,
                metrics=metrics,
                simulated_steps=PRETENDED if is_dry else (),
            )
            wants_host = config.host_shutdown.delay and not is_dry and not is_once
            host = HostShutdown(runner, clock) if wants_host else None
            run_file = None if is_dry else RunFile(Path(config.state))

            def write_run_state() -> None:
                if run_file is not None:
                    _write_run_state(run_file, runner, service, host)

            def on_answer() -> None:
                runner.on_poll()
                write_run_state()

            service.on_answer = on_answer
            runner.approval_reasons.on_change = write_run_state
            if host is not None:
                host.on_status = write_run_state
            write_run_state()
            reloader = Reloader(runner, service, reread)
            # A dry run may run beside the real agent, which already listens on the address.
            listen = None if is_dry else config.listen
            following = contextlib.nullcontext() if host is None else host.following()
            async with following, _run_with_listeners(runner, listen, metrics, reloader):
                logs.say(f"watching {service.url} as {me.name}", name=me.name)
                await runner.run(_once(runner, service) if is_once else None)
    finally:
        state.close()


def _write_run_state(
    run_file: RunFile, runner: Runner, service: AgentClient, host: HostShutdown | None
) -> None:
    run_file.write(
        name=runner.me.name,
        url=service.url,
        is_answered=service.has_answered and not service.trouble,
        trouble=service.trouble,
        host_shutdown="" if host is None else host.status,
        reasons=runner.approval_reasons.now,
    )


def _once(runner: Runner, service: AgentClient) -> Callable[[], bool]:
    def is_done() -> bool:
        if not service.has_answered and service.trouble:
            raise EventsUnavailable(service.trouble)
        return service.has_answered and runner.is_idle and not service.seen.is_in_doubt

    return is_done


async def _identify(config: Config, service: AgentClient, *, is_once: bool) -> Instance | None:
    """Return this VM. The service is asked until it answers, if needed.

    It returns None if a signal to stop comes first. With `is_once`, it raises EventsUnavailable if
    the service does not answer.
    """
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
    """Yield an event that SIGTERM and SIGINT set."""
    stopped = asyncio.Event()
    # SIGHUP needs a handler even before a reload is possible, because it ends a process by default.
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
        """`reread` reads the config again. It may raise BadConfig or OSError."""
        self._runner = runner
        self._service = service
        self._reread = reread
        self._asking: asyncio.Task[None] | None = None

    def reload(self) -> None:
        """Read the config and use it. If it cannot be read, log that and keep the old one.

        If the new config needs more data about this VM, the service is asked first. Otherwise a
        rule could be missed because a tag is not known.
        """
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
async def _run_with_listeners(
    runner: Runner, listen: tuple[str, int] | None, metrics: Metrics, reloader: Reloader
) -> AsyncIterator[None]:
    """Provide the probes, the signal handlers and systemd's watchdog during the context."""
    listener = Listener(metrics, runner.is_drained)
    if listen is not None:
        await listener.start(*listen)

    def stop() -> None:
        logs.say("stopping; what is drained stays so, and the state is kept")
        notify(STOPPING="1", STATUS="stopping")
        runner.stop()

    barking = asyncio.create_task(ping_watchdog())
    try:
        with _on_signals(stop, reloader.reload):
            notify(READY="1", STATUS="watching")
            yield
    finally:
        reloader.stop()
        await end(barking)
        await listener.stop()


_FIXED = ("endpoint", "name", "state", "listen", "host_shutdown")
"""Settings that a reload cannot change."""
PRETENDED = (Do, Undo, Approve, Forget)
"""Steps that a dry run does not log as started or done."""


class DryHandler:
    async def do(self, action: Action, context: Context) -> None:
        _say("would do", action, context)

    async def undo(self, action: Action, context: Context) -> None:
        _say("would undo", action, context)


def _say(word: str, action: Action, context: Context) -> None:
    title = context.render(action.title)
    logs.say(f"{word}: {title}", event=context.event.id, action=title)


def dry_handler_of(_: Settings) -> ActionHandler:
    return DryHandler()


class DryClient(AgentClient):
    """The service of a dry run. It polls, but sends no approvals or reports."""

    async def approve(self, *event_ids: str) -> None:
        for id in event_ids:
            logs.say("would approve", event=id)

    async def report(self, event_id: str) -> tuple[str, ...]:
        logs.say("would tell the other VMs that this one is ready", event=event_id)
        return await self.waiting(event_id)
