"""Stops systemd units. The undo starts only the units that were running before."""

from collections.abc import Iterable
from dataclasses import dataclass

from fairwarning.agent.actions.base import ActionFailed, Context, settings_of
from fairwarning.agent.actions.processes import must_run
from fairwarning.agent.config.model import Action, Systemd

WERE_RUNNING = "were_running"
_RUNNING = frozenset({"active", "activating", "reloading", "refreshing"})
# The bus gives the last one for a dynamic user, which exists only while the service runs.
_REFUSED = ("Access denied", "authentication required", "Transport endpoint is not connected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    name: str
    is_there: bool
    is_running: bool


class SystemdHandler:
    async def do(self, action: Action, context: Context) -> None:
        settings = settings_of(action, Systemd)
        wanted = [context.render(unit) for unit in settings.stop]
        if WERE_RUNNING not in (context.kept or {}):
            shown = await _systemctl(settings, show_arguments(wanted), context)
            units = read_units(shown)
            _check_there(units)
            running = [unit.name for unit in units if unit.is_running]
            context.keep(WERE_RUNNING, " ".join(running))
        for unit in wanted:
            await _systemctl(settings, ["stop", "--", unit], context)

    async def undo(self, action: Action, context: Context) -> None:
        settings = settings_of(action, Systemd)
        were_running = (context.kept or {}).get(WERE_RUNNING, "")
        for unit in reversed(were_running.split()):
            await _systemctl(settings, ["start", "--", unit], context)


def show_arguments(units: Iterable[str]) -> list[str]:
    return ["show", "--property=Id,LoadState,ActiveState", "--", *units]


def read_units(shown: str) -> list[Unit]:
    """Return the units in the output of `systemctl show`, which has a block of lines for each."""
    blocks = [block for block in shown.strip().split("\n\n") if block.strip()]
    return [_unit(block.splitlines()) for block in blocks]


def _unit(lines: list[str]) -> Unit:
    properties = {name: value for name, _, value in (line.partition("=") for line in lines)}
    return Unit(
        name=properties.get("Id", ""),
        is_there=properties.get("LoadState") != "not-found",
        is_running=properties.get("ActiveState") in _RUNNING,
    )


def _check_there(units: Iterable[Unit]) -> None:
    missing = [unit.name for unit in units if not unit.is_there]
    if missing:
        raise ActionFailed(f"there is no unit {missing[0]}; see systemctl list-unit-files")


async def _systemctl(settings: Systemd, arguments: list[str], context: Context) -> str:
    whose = ["--user"] if settings.user else []
    argv = ["systemctl", "--no-ask-password", *whose, *arguments]
    try:
        return await must_run(argv, environment=context.environment)
    except ActionFailed as failed:
        if any(words in str(failed) for words in _REFUSED):
            raise ActionFailed(f"{failed}; see deploy/README.md on who may stop units") from None
        raise
