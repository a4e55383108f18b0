"""`fairwarning agent status` shows whether the agent runs and what it is doing.

It reads the files beside the agent's state, so it needs no listener and works for a dead agent.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fairwarning.agent.cli.main import config_option, json_option, load, problems_of
from fairwarning.agent.config.model import Phase
from fairwarning.agent.logs import about
from fairwarning.agent.records import HOLDS, Memory, Record
from fairwarning.agent.run_file import RunState, is_running, read_run_state
from fairwarning.agent.state_file import StateProblem, read_state
from fairwarning.common.command_errors import Problem
from fairwarning.common.durations import human_s
from fairwarning.common.escape import one_line

_EXAMPLES = """\b
Examples:
  fairwarning agent status
  fairwarning agent status --config agent.toml --json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the files beside the state say."""

    memory: Memory
    run: RunState | None
    is_running: bool

    def why_not_approved(self, record: Record) -> str:
        """Return why the running agent does not approve the event, or an empty text."""
        if self.run is None or not self.is_running:
            return ""
        return self.run.not_approved.get(record.event.id, "")


@click.command(epilog=_EXAMPLES)
@config_option
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="State file to read (default: the one that the config names).",
)
@json_option
def status(path: Path, state: Path | None, is_json: bool) -> None:
    """Show whether the agent runs, and what it is doing.

    It says since when the agent runs, when the service last answered, which events there are,
    what is drained for them, and why an event is not approved. The exit code is 1 if no agent runs.
    """
    with problems_of(path):
        chosen = Path(load(path).state) if state is None else state
    found = _find(chosen)
    now = datetime.now(UTC)
    if is_json:
        click.echo(json.dumps(_object(found)))
    else:
        _tell(found, now)
    if not found.is_running:
        last = "" if found.run is None else f", and the last one was seen {_ago(found.run, now)}"
        raise Problem(
            f"no agent uses {chosen}{last}; start one with `fairwarning agent --config FILE`, or "
            "as a service"
        )


def _find(state: Path) -> _Found:
    """Raises Problem if the files cannot be read."""
    try:
        return _Found(
            memory=read_state(state), run=read_run_state(state), is_running=is_running(state)
        )
    except StateProblem as problem:
        raise Problem(str(problem)) from None
    except OSError as problem:
        raise Problem(f"{state} cannot be read: {problem.strerror}") from None


def _ago(run: RunState, now: datetime) -> str:
    return f"{human_s((now - (run.answered or run.since)).total_seconds())} ago"


def _object(found: _Found) -> dict[str, Any]:
    run = found.run
    return {
        "running": found.is_running,
        "pid": run.pid if run is not None and found.is_running else None,
        "name": "" if run is None else run.name,
        "endpoint": "" if run is None else run.url,
        "since": None if run is None else run.since.isoformat(),
        "answered": None if run is None or run.answered is None else run.answered.isoformat(),
        "trouble": "" if run is None else run.trouble,
        "hostShutdown": "" if run is None else run.host_shutdown,
        "events": [
            {**_event(each), "notApproved": found.why_not_approved(each) or None}
            for each in found.memory.records.values()
        ],
    }


def _event(record: Record) -> dict[str, Any]:
    event = record.event
    return {
        "id": event.id,
        "type": event.type,
        "phase": record.phase.value,
        "resources": list(event.resources),
        "notBefore": None if record.not_before is None else record.not_before.isoformat(),
        "rule": None if record.rule is None else record.rule.name,
        "approval": record.approval.value,
        "actions": [
            {"phase": phase.value, "action": title, "mark": mark, "why": why}
            for phase, title, mark, why in _action_states(record)
        ],
    }


def _action_states(record: Record) -> list[tuple[Phase, str, str, str]]:
    found = []
    for phase in Phase:
        for place, action in record.actions(phase):
            state = record.action_state(place)
            mark = "to do" if state is None else state.progress.value
            found.append((phase, action.title, mark, "" if state is None else state.why))
    return found


def _tell(found: _Found, now: datetime) -> None:
    if found.is_running and found.run is not None:
        _tell_run(found.run, now)
    if not found.memory.records:
        click.echo("no event, and nothing is left to be undone")
    for record in found.memory.records.values():
        rule = "no rule fits" if record.rule is None else f"rule {record.rule.name!r}"
        approved = {"done": ", approved", "begun": ", being approved"}.get(record.approval, "")
        click.echo(one_line(f"{about(record.event)} is {record.phase}; {rule}{approved}"))
        if why := found.why_not_approved(record):
            click.echo(one_line(f"- not approved, because {why}"))
        for phase, title, mark, why in _action_states(record):
            click.echo(one_line(f"- {phase}: {title}: {mark}") + (f" ({why})" if why else ""))
        click.echo(one_line(f"- drained: {', '.join(_drained(record)) or 'nothing'}"))


def _tell_run(run: RunState, now: datetime) -> None:
    lasted = human_s((now - run.since).total_seconds())
    since = run.since.isoformat(timespec="seconds").replace("+00:00", "Z")
    click.echo(one_line(f"running as {run.name} since {since} ({lasted}), process {run.pid}"))
    answered = "has not answered yet" if run.answered is None else f"answered {_ago(run, now)}"
    trouble = f"; now: {run.trouble}" if run.trouble else ""
    click.echo(one_line(f"the service {run.url} {answered}{trouble}"))
    if run.host_shutdown:
        click.echo(one_line(run.host_shutdown))


def _drained(record: Record) -> list[str]:
    """Return the actions that were done for the event and are not undone."""
    return [
        action.title
        for phase in (Phase.SCHEDULED, Phase.STARTED)
        for place, action in record.actions(phase)
        if record.progress(place) in HOLDS
    ]
