"""The program `fairwarning`. It has the table of commands, and prints errors in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from fairwarning import __version__
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import one_line
from fairwarning.common.lazy_group import LazyGroup

_EXAMPLES = """\b
Examples:
  fairwarning serve                        the server, with a starter fleet
  fairwarning schedule reboot web-0 --wait announce a reboot and follow it
  fairwarning watch                        the fleet, live
  fairwarning demo                         the life of one event, shown in the terminal
  fairwarning COMMAND --help               more examples
"""

_HERE = "fairwarning.cli"
COMMANDS = {
    "serve": (f"{_HERE}.serve:serve", "Run the server until Ctrl-C."),
    "fleet": (f"{_HERE}.fleet:fleet", "Declare and see the fleet."),
    "schedule": (f"{_HERE}.schedule:schedule", "Announce an event of TYPE for each TARGET."),
    "rollout": (
        f"{_HERE}.rollout:rollout",
        "Take maintenance through a fleet, one update domain at a time.",
    ),
    "restart": (f"{_HERE}.operations:restart", "Restart INSTANCE."),
    "redeploy": (f"{_HERE}.operations:redeploy", "Move INSTANCE to another host."),
    "reimage": (
        f"{_HERE}.operations:reimage",
        "Give INSTANCE a new disk, and the latest model of its scale set.",
    ),
    "start": (f"{_HERE}.operations:start", "Start INSTANCE."),
    "stop": (f"{_HERE}.operations:stop", "Stop INSTANCE; it keeps its host."),
    "deallocate": (
        f"{_HERE}.operations:deallocate",
        "Stop INSTANCE and give its host back.",
    ),
    "delete": (f"{_HERE}.operations:delete", "Delete INSTANCE."),
    "evict": (f"{_HERE}.operations:evict", "Evict INSTANCE, which must be a Spot one."),
    "replace": (
        f"{_HERE}.scale_sets:replace",
        "Replace INSTANCE of a scale set by a new one.",
    ),
    "scale": (
        f"{_HERE}.scale_sets:scale",
        "Make SET, a scale set, have CAPACITY instances.",
    ),
    "model": (
        f"{_HERE}.scale_sets:model",
        "Change how long before a delete or a reimage the instances of SET are warned.",
    ),
    "upgrade": (
        f"{_HERE}.scale_sets:upgrade",
        "Bring each INSTANCE of SET, or all of them, to the latest model.",
    ),
    "policy": (
        f"{_HERE}.scale_sets:policy",
        "Change what the owner of SCOPE agrees to in advance.",
    ),
    "events": (f"{_HERE}.events:events", "List the events that are not over, the newest first."),
    "event": (f"{_HERE}.events:event", "See one event."),
    "approve": (f"{_HERE}.events:approve", "Agree that the event ID starts now."),
    "cancel": (f"{_HERE}.events:cancel", "Cancel the event ID, which must not have started."),
    "postpone": (
        f"{_HERE}.events:postpone",
        "Cancel the event ID and announce another in its place, at a later time.",
    ),
    "watch": (f"{_HERE}.watch:watch", "Watch the fleet on a live screen until q or Ctrl-C."),
    "history": (f"{_HERE}.history:history", "List what happened, the newest first."),
    "scenario": (
        f"{_HERE}.scenario:scenario",
        "List, show and play scenarios: scripts of what happens to instances.",
    ),
    "fault": (f"{_HERE}.fault:fault", "Make the endpoint misbehave, in test fleets only."),
    "record": (
        f"{_HERE}.record:record",
        "Write down what the endpoint of this VM says over time, one JSON object a line.",
    ),
    "check": (
        f"{_HERE}.check:check",
        "Check what COMMAND, a handler of scheduled events, does in every kind of trouble.",
    ),
    "clock": (f"{_HERE}.clock:clock", "See the server's clock, and move a virtual one."),
    "token": (f"{_HERE}.token:token", "Make, list and revoke tokens."),
    "azure-setup": (
        f"{_HERE}.azure_setup:azure_setup",
        "Make az and the Azure SDKs use this server.",
    ),
    "notification": (
        f"{_HERE}.notification:notification",
        "Tell people and programs what happens.",
    ),
    "demo": (
        f"{_HERE}.demo:demo",
        "Show the life of one event: announced, approved, carried out, gone.",
    ),
    "agent": (
        "fairwarning.agent.cli.main:agent",
        "Get this VM's workload out of the way of each event, and back afterwards.",
    ),
    "completion": (
        f"{_HERE}.completion:completion",
        "Print the completion script of bash, zsh or fish.",
    ),
}
"""Where each command is defined, and its line in the help."""


class _Program(LazyGroup):
    """Prints every usage error in one line, even if the input has line breaks."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _mistakes_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _mistakes_in_one_line():
            return super().invoke(ctx)


@contextmanager
def _mistakes_in_one_line() -> Iterator[None]:
    """Escape line breaks and control characters in click's errors, which quote the input."""
    try:
        yield
    except (Problem, click.exceptions.NoArgsIsHelpError):
        raise
    except click.UsageError as mistake:
        raise click.UsageError(one_line(mistake.format_message()), mistake.ctx) from None
    except click.ClickException as mistake:
        raise click.ClickException(one_line(mistake.format_message())) from None


@click.group(
    cls=_Program,
    lazy=COMMANDS,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
def main() -> None:
    """Fairwarning: no machine goes down without fair warning."""
