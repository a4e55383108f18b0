"""The agent as a process: puts the parts together, listens to signals, and tells systemd."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from fairwarning.agent import identifying, logs
from fairwarning.agent.actions.base import Doer
from fairwarning.agent.clock import Clock, end
from fairwarning.agent.dry import PRETENDED, DryService, dry_doer_of
from fairwarning.agent.figures import Figures
from fairwarning.agent.left_behind import take_over
from fairwarning.agent.listener import Listener
from fairwarning.agent.memory import Forgetful, StateFile
from fairwarning.agent.model import Config, Settings
from fairwarning.agent.reloading import Reloader
from fairwarning.agent.runner import Runner
from fairwarning.agent.service import Service
from fairwarning.agent.systemd_notify import notify, watchdog_s
from fairwarning.client.model import EventsUnavailable, Instance


def real_doer_of(settings: Settings) -> Doer:
    """Imported with the first event: an agent that only watches stays small."""
    from fairwarning.agent.actions.kinds import DOERS  # noqa: PLC0415

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
    if config.name and not identifying.needs_more(config):
        return Instance(name=config.name)
    with _stops() as stopped:
        asking = asyncio.ensure_future(identifying.ask(service, gives_up=is_once))
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
