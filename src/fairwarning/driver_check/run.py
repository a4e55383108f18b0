"""Runs the checks of a driver one after another, and makes the report."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from fairwarning.core.model import EventType
from fairwarning.driver_check.checks import CHECKS
from fairwarning.driver_check.nodes import CallFailed, NodeDied
from fairwarning.driver_check.results import CheckFailed, LeftOut, Report, Result, Verdict
from fairwarning.driver_check.shell_target import CommandFailed, shell_target
from fairwarning.driver_check.world import World
from fairwarning.drivers import DriverFailed, plugins
from fairwarning.drivers.check_target import CheckTarget


class CannotCheck(Exception):
    """The check cannot begin. The text says what is missing or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    driver: str
    settings: Mapping[str, str]
    handles: tuple[str, ...] = ()
    type: EventType = EventType.FREEZE
    duration_s: int = 1
    count: str = ""
    away: str = ""
    back: str = ""
    checks: Sequence[str] = tuple(CHECKS)
    patience_s: float = 60.0
    gaps_max: int = 16


def check(options: CheckOptions, show: Callable[[Result], None]) -> Report:
    """Runs the checks, and calls `show` with each result. Raises CannotCheck."""
    plugin = plugins.installed().get(options.driver)
    if plugin is None:
        known = ", ".join(plugins.installed())
        raise CannotCheck(f"no driver is called {options.driver!r}; use one of {known}")
    if plugin.settings.unusable:
        raise CannotCheck(f"driver {options.driver!r} cannot be used: {plugin.settings.unusable}")
    return asyncio.run(_check(plugin, options, show))


async def _check(
    plugin: plugins.Plugin, options: CheckOptions, show: Callable[[Result], None]
) -> Report:
    results = []
    try:
        async with _target(plugin, options) as target:
            problem = plugin.settings.problem(target.settings)
            if problem is not None:
                raise CannotCheck(problem)
            world = World(options.driver, target, options.patience_s, options.gaps_max)
            for name in options.checks:
                results.append(await _run(name, world))
                show(results[-1])
    except DriverFailed as failure:
        raise CannotCheck(str(failure)) from None
    return Report(driver=options.driver, package=plugin.package, results=results)


def _target(
    plugin: plugins.Plugin, options: CheckOptions
) -> AbstractAsyncContextManager[CheckTarget]:
    own = getattr(plugin.driver, "check_target", None)
    if own is not None and not options.handles:
        made: AbstractAsyncContextManager[CheckTarget] = own(options.settings)
        return made
    if not options.handles:
        raise CannotCheck(
            "name instances that may be lost, each as the driver calls it: --instance HANDLE"
        )
    return nullcontext(
        shell_target(
            settings=options.settings,
            handles=options.handles,
            type=options.type,
            duration_s=options.duration_s,
            count=options.count,
            away=options.away,
            back=options.back,
        )
    )


async def _run(name: str, world: World) -> Result:
    began_s = time.monotonic()
    verdict = Verdict.PASSED
    try:
        why = await CHECKS[name].run(world)
        if world.target.count is None and world.target.acts:
            why = "; ".join(each for each in (why, "only the answers were seen") if each)
    except LeftOut as left_out:
        verdict, why = Verdict.LEFT_OUT, str(left_out)
    except CheckFailed as failed:
        verdict, why = Verdict.FAILED, str(failed)
    except (CallFailed, CommandFailed) as failed:
        verdict, why = Verdict.FAILED, f"{type(failed).__name__}: {failed}"
    except NodeDied as died:
        verdict, why = Verdict.FAILED, f"the driver's process ended by itself during {died}"
    return Result(
        check=name,
        title=CHECKS[name].title,
        verdict=verdict,
        why=why,
        seconds=round(time.monotonic() - began_s, 1),
    )
