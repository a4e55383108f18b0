"""Reads a scenario from TOML. Every mistake comes out with its line."""

from typing import Any

from fairwarning.common.toml_lines import Lines
from fairwarning.drivers.catalogue import DRIVER_CATALOGUE
from fairwarning.fleet_file import FleetProblem, read_json
from fairwarning.fleet_file.problems import Misplaced, Path, suggestion
from fairwarning.fleet_file.read import parse_toml
from fairwarning.scenarios.model import (
    Approve,
    Cancel,
    Deed,
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
from fairwarning.scenarios.step_actions import DEEDS
from fairwarning.scenarios.toml_table import Table

STEPS_MAX = 1_000
_TOP_KEYS = ("title", "story", "fleet", "step")
_STEP_KEYS = ("after", "at", "say", *DEEDS, "as", "reason")
_MAKERS = (Schedule, Operate, Postpone, StartRollout)


def read_scenario(text: str) -> Scenario:
    """Raises ScenarioProblem."""
    try:
        text, data = parse_toml(text)
    except FleetProblem as problem:
        raise ScenarioProblem(problem.message, line=problem.line) from None
    lines = Lines(text)
    try:
        return _scenario(data, lines)
    except Misplaced as mistake:
        raise ScenarioProblem(mistake.message, line=lines.of(mistake.path)) from None


def _scenario(data: dict[str, Any], lines: Lines) -> Scenario:
    top = Table(data, (), _TOP_KEYS)
    title, story = top.needed("title"), top.text("story")
    fleet = _fleet(top)
    steps = _steps(top.raw("step"), lines)
    top.close()
    return Scenario(title=title, story=story, fleet=fleet, steps=steps)


def _fleet(top: Table) -> Json | None:
    raw = top.raw("fleet")
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise Misplaced(("fleet",), "`fleet` must be a table; begin it with [fleet]")
    fleet: Json = {"test": True, **raw}
    try:
        read_json(fleet, DRIVER_CATALOGUE)
    except FleetProblem as problem:
        raise Misplaced(("fleet", *_path(problem.pointer or "")), problem.message) from None
    return fleet


def _path(pointer: str) -> Path:
    parts = (each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:])
    return tuple(int(each) if each.isdecimal() else each for each in parts)


def _steps(raw: object, lines: Lines) -> tuple[Step, ...]:
    if not isinstance(raw, list) or not raw:
        raise Misplaced(("step",), "a scenario needs steps; begin each with [[step]]")
    if len(raw) > STEPS_MAX:
        raise Misplaced(("step", STEPS_MAX), f"a scenario has at most {STEPS_MAX} steps")
    steps: list[Step] = []
    known: dict[str, bool] = {}
    """The names given so far, and whether each is that of a rollout."""
    for number, each in enumerate(raw):
        path: Path = ("step", number)
        table = Table(each, path, _STEP_KEYS)
        deed = _deed(table)
        step = Step(
            at_ms=_at_ms(table, steps[-1].at_ms if steps else 0),
            line=lines.of(path),
            say=table.text("say"),
            name=table.text("as"),
            deed=deed,
        )
        table.close()
        _check_names(table, step, known)
        steps.append(step)
    return tuple(steps)


def _deed(table: Table) -> Deed | None:
    found = [key for key in DEEDS if table.has(key)]
    if len(found) > 1:
        message = f"a step does one thing, and this has {' and '.join(found)}; make two of it"
        raise Misplaced(table.at(found[1]), message)
    return DEEDS[found[0]](table) if found else None


def _at_ms(table: Table, before_ms: int) -> int:
    at_ms, after_ms = table.span_ms("at"), table.span_ms("after")
    if at_ms is None:
        return before_ms + (after_ms or 0)
    if after_ms is not None:
        raise Misplaced(table.at("after"), "`at` and `after` say the same; give one of them")
    if at_ms < before_ms:
        raise Misplaced(table.at("at"), "`at` is before the step above; steps come in order")
    return at_ms


def _check_names(table: Table, step: Step, known: dict[str, bool]) -> None:
    deed = step.deed
    if isinstance(deed, Approve | Cancel | Postpone):
        _refuse_unknown(table, deed.event, known, is_rollout=False)
    elif isinstance(deed, Expect):
        _refuse_unknown(table, deed.name, known, is_rollout=deed.is_rollout)
    if not step.name:
        return
    if not isinstance(deed, _MAKERS):
        raise Misplaced(table.at("as"), "this step makes nothing that could have a name")
    if step.name in known:
        raise Misplaced(table.at("as"), f"`{step.name}` is taken by a step above; choose another")
    known[step.name] = isinstance(deed, StartRollout)


def _refuse_unknown(table: Table, name: str, known: dict[str, bool], *, is_rollout: bool) -> None:
    names = [each for each, rolls in known.items() if rolls == is_rollout]
    if name in names:
        return
    what = "rollout" if is_rollout else "event"
    if not names:
        message = f"no step above makes a {what}; give one a name with `as`"
    else:
        message = f"no step above calls its {what} `{name}`; {suggestion(name, names)}"
    raise Misplaced(table.path, message)
