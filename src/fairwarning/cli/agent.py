"""`fairwarning agent`: the agent of a VM, and what helps to set it up. Knows no server."""

import asyncio
from pathlib import Path

import click

from fairwarning.agent import logs
from fairwarning.agent.config import read_file
from fairwarning.cli.agent_config import config_option, load, problems_of
from fairwarning.cli.lazy import LazyGroup

_HERE = "fairwarning.cli"
COMMANDS = {
    "check-config": (
        f"{_HERE}.agent_check:check_config",
        "Say everything that is wrong with FILE.",
    ),
    "explain": (
        f"{_HERE}.agent_explain:explain",
        "Show which rule an event would take, and why.",
    ),
    "test": (
        f"{_HERE}.agent_test:test",
        "Play a made-up event of TYPE through the real actions.",
    ),
    "status": (f"{_HERE}.agent_status:status", "Show what the agent is at."),
}
_EXAMPLES = """\b
Examples:
  fairwarning agent --config agent.toml
  fairwarning agent --config agent.toml --dry-run
  fairwarning agent check-config agent.toml
  fairwarning agent explain --config agent.toml --type Reboot
  fairwarning agent test reboot --config agent.toml
  fairwarning agent status --config agent.toml
"""


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True, epilog=_EXAMPLES)
@config_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Watch and tell, but do nothing.")
@click.option("--once", "is_once", is_flag=True, help="Do what is due now, and end.")
@click.option(
    "--log-format",
    "log_format",
    type=click.Choice(logs.FORMATS),
    default="human",
    show_default=True,
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
@click.pass_context
def agent(
    ctx: click.Context, path: Path, is_dry: bool, is_once: bool, log_format: str, log_level: str
) -> None:
    """Get this VM's workload out of the way of each event, and back afterwards."""
    if ctx.invoked_subcommand is not None:
        return
    from fairwarning.agent.program import run_agent  # noqa: PLC0415  (the others need less)

    logs.set_up(log_format, log_level)
    with problems_of(path):
        config = load(path)
        work = run_agent(config, lambda: read_file(path), is_dry=is_dry, is_once=is_once)
        asyncio.run(work)
