"""Reads a scenario from TOML, and reports all mistakes at once, each with its line."""

from typing import Any

from fairwarning.common.toml_lines import Lines, Path
from fairwarning.common.toml_table import Mistake, suggestion, with_lines
from fairwarning.common.toml_text import NotToml, parse_toml
from fairwarning.drivers import plugins
from fairwarning.fleet_file.problems import FleetProblem
from fairwarning.fleet_file.read import read_json
from fairwarning.scenarios.model import (
    Action,
    Approve,
    Cancel,
    Expect,
    Json,
    Operate,
    Postpone,
    Scenario,
    ScenarioProblem,
    Schedule,
    StartRollout,
    Step,
)
from fairwarning.scenarios.scenario_table import ScenarioTable
from fairwarning.scenarios.step_actions import ACTIONS

STEPS_MAX = 1_000  # Far more than a person writes; a generated file must not fill the memory.
_TOP_KEYS = ("title", "description", "fleet", "step")
_STEP_KEYS = ("after", "at", "say", *ACTIONS, "as", "reason")
_NAMED_ACTIONS = (Schedule, Operate, Postpone, StartRollout)
"""The actions that make an event or a rollout, which a step can name."""


def read_scenario(text: str) -> Scenario:
    """Read a scenario from TOML. Raises `ScenarioProblem` with all mistakes."""
    try:
        text, raw = parse_toml(text)
    except NotToml as problem:
        raise ScenarioProblem(Mistake(line=problem.line, message=problem.message)) from None
    mistakes: list[tuple[Path, str]] = []
    scenario = _read(raw, mistakes, Lines(text))
    if mistakes:
        raise ScenarioProblem(*with_lines(mistakes, text))
    return scenario


def _read(raw: dict[str, Any], mistakes: list[tuple[Path, str]], lines: Lines) -> Scenario:
    top = ScenarioTable(raw, (), mistakes)
    top.keys = _TOP_KEYS
    scenario = Scenario(
        title=top.needed("title"),
        description=top.text("description"),
        fleet=_fleet(top),
        steps=_steps(top, lines),
    )
    top.close()
    return scenario


def _fleet(top: ScenarioTable) -> Json | None:
    raw = top.value("fleet")
    if raw is None:
        return None
    if not isinstance(raw, dict):
        top.wrong("fleet", "`fleet` must be a table; begin it with [fleet]")
        return None
    fleet: Json = {"test": True, **raw}
    try:
        read_json(fleet, plugins.catalogue())
    except FleetProblem as problem:
        for each in problem.mistakes:
            top.mistakes.append((("fleet", *_path(each.pointer or "")), each.message))
    return fleet


def _path(pointer: str) -> Path:
    parts = (each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:])
    return tuple(int(each) if each.isdecimal() else each for each in parts)


def _steps(top: ScenarioTable, lines: Lines) -> tuple[Step, ...]:
    raw = top.value("step")
    if not isinstance(raw, list) or not raw:
        top.wrong("step", "a scenario needs steps; begin each with [[step]]")
        return ()
    if len(raw) > STEPS_MAX:
        top.mistakes.append((("step", STEPS_MAX), f"a scenario has at most {STEPS_MAX} steps"))
        return ()
    steps: list[Step] = []
    names = _Names()
    for table in top.tables("step"):
        table.keys = _STEP_KEYS
        mistakes_before = len(table.mistakes)
        step = Step(
            at_ms=_at_ms(table, steps[-1].at_ms if steps else 0),
            line=lines.of(table.path),
            say=table.text("say"),
            name=table.text("as"),
            action=_action(table),
        )
        table.close()
        if len(table.mistakes) == mistakes_before:
            names.check(table, step)
        else:
            # It is unknown what this step makes, so later steps may use its name for both.
            names.events.append(step.name)
            names.rollouts.append(step.name)
        steps.append(step)
    return tuple(steps)


def _action(table: ScenarioTable) -> Action | None:
    found = [key for key in ACTIONS if table.has(key)]
    if len(found) > 1:
        message = f"a step does one thing, and this has {' and '.join(found)}; make two of it"
        table.wrong(found[1], message)
        return None
    return ACTIONS[found[0]](table) if found else None


def _at_ms(table: ScenarioTable, before_ms: int) -> int:
    at_ms, after_ms = table.duration_ms("at"), table.duration_ms("after")
    if at_ms is None:
        return before_ms + (after_ms or 0)
    if after_ms is not None:
        table.wrong("after", "`at` and `after` say the same; give one of them")
    elif at_ms < before_ms:
        table.wrong("at", "`at` is before the step above; steps come in order")
    return max(at_ms, before_ms)


class _Names:
    """The names of events and rollouts that the steps so far have given."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.rollouts: list[str] = []

    def check(self, table: ScenarioTable, step: Step) -> None:
        """Report a name that no step above gives, and remember the one that this step gives."""
        action = step.action
        if isinstance(action, Approve | Cancel | Postpone):
            self._refuse_unknown(table, action.event, is_rollout=False)
        elif isinstance(action, Expect):
            self._refuse_unknown(table, action.name, is_rollout=action.is_rollout)
        if not step.name:
            return
        if not isinstance(action, _NAMED_ACTIONS):
            table.wrong("as", "this step makes nothing that could have a name")
        elif step.name in self.events + self.rollouts:
            table.wrong("as", f"`{step.name}` is taken by a step above; choose another")
        else:
            names = self.rollouts if isinstance(action, StartRollout) else self.events
            names.append(step.name)

    def _refuse_unknown(self, table: ScenarioTable, name: str, *, is_rollout: bool) -> None:
        names = self.rollouts if is_rollout else self.events
        if name in names:
            return
        what = "rollout" if is_rollout else "event"
        if not names:
            message = f"no step above makes a {what}; give one a name with `as`"
        else:
            message = f"no step above calls its {what} `{name}`; {suggestion(name, names)}"
        table.wrong(None, message)
