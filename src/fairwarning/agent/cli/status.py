"""`fairwarning agent status` shows what the agent is doing, read from its state file."""

import json
import os
from pathlib import Path
from typing import Any

import click

from fairwarning.agent.cli.main import config_option, json_option, load, problems_of
from fairwarning.agent.log_messages import about
from fairwarning.agent.model import Phase
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.state_file import StateProblem, read_state
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import one_line

_EXAMPLES = """\b
Examples:
  fairwarning agent status
  fairwarning agent status --config agent.toml --json
"""


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
    """Show what the agent is doing: the events, and what was done and undone for them."""
    with problems_of(path):
        chosen = Path(load(path).state) if state is None else state
    if not os.path.exists(chosen):  # Path.exists raises for a name that is too long.
        raise Problem(f"there is no state in {chosen}; the agent has not seen an event yet")
    try:
        memory = read_state(chosen)
    except StateProblem as problem:
        raise Problem(str(problem)) from None
    if is_json:
        click.echo(json.dumps({"events": [_object(each) for each in memory.records.values()]}))
    else:
        _tell(memory)


def _object(record: Record) -> dict[str, Any]:
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


def _tell(memory: Memory) -> None:
    if not memory.records:
        click.echo("no event, and nothing is left to be undone")
    for record in memory.records.values():
        rule = "no rule fits" if record.rule is None else f"rule {record.rule.name!r}"
        approved = {"done": ", approved", "begun": ", being approved"}.get(record.approval, "")
        click.echo(one_line(f"{about(record.event)} is {record.phase}; {rule}{approved}"))
        for phase, title, mark, why in _action_states(record):
            click.echo(one_line(f"- {phase}: {title}: {mark}") + (f" ({why})" if why else ""))
