"""`fairwarning agent check-config` reports every mistake in a config."""

import json
from pathlib import Path

import click

from fairwarning.agent.cli.main import config_option, json_option, load
from fairwarning.agent.config import BadConfig
from fairwarning.agent.model import Phase
from fairwarning.agent.preflight import missing
from fairwarning.agent.rules import never_taken
from fairwarning.common.escape import one_line

_EXAMPLES = """\b
Examples:
  fairwarning agent check-config agent.toml
  fairwarning agent check-config agent.toml --json
"""


@click.command("check-config", epilog=_EXAMPLES)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@config_option
@json_option
def check_config(file: Path | None, path: Path, is_json: bool) -> None:
    """Report every mistake in FILE.

    It also warns of what would fail only when an event has come: a program, file, socket, unit or
    Apprise that is not there, a state that cannot be written, and rights that kubectl lacks. Run it
    on the VM, as the user of the agent. Without FILE, the file of --config is checked.
    """
    path = file or path
    try:
        config = load(path)
    except BadConfig as bad:
        _tell_mistakes(path, bad, is_json=is_json)
        raise SystemExit(1) from None
    warnings = [
        f"rule {late.name!r} is never taken: {early.name!r} before it takes all that it could"
        for late, early in never_taken(config)
    ]
    warnings += missing(config)
    if is_json:
        names = [rule.name for rule in config.rules]
        shown = {"ok": True, "rules": names, "mistakes": [], "warnings": warnings}
        click.echo(json.dumps(shown))
        return
    click.echo(f"{path} is in order. Its rules, of which the first that fits is taken:")
    for rule in config.rules:
        lists = ((phase, rule.actions(phase)) for phase in Phase)
        counts = [f"{len(actions)} {phase}" for phase, actions in lists if actions]
        click.echo(f"  {rule.name}: {', '.join(counts) or 'no actions'}")
    for each in warnings:
        click.echo(one_line(f"{path}: warning: {each}"), err=True)


def _tell_mistakes(path: Path, bad: BadConfig, *, is_json: bool) -> None:
    if is_json:
        shown = [{"line": each.line, "message": each.message} for each in bad.mistakes]
        click.echo(json.dumps({"ok": False, "rules": [], "mistakes": shown, "warnings": []}))
        return
    for each in bad.mistakes:
        click.echo(one_line(f"{path}:{each.line}: {each.message}"), err=True)
