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
  fairwarning demo                           the life of one event, in ten seconds
  fairwarning serve                          the server, with a starter fleet
  fairwarning schedule reboot web-0 --wait   announce a reboot and follow it
  fairwarning watch                          the fleet, live
  fairwarning COMMAND --help                 more examples
"""

_HERE = "fairwarning.cli"
COMMANDS = {
    "serve": (f"{_HERE}.serve:serve", "Run the server until Ctrl-C."),
    "fleet": (
        f"{_HERE}.fleet:fleet",
        "Plan and apply a fleet file, show the fleet, and remove instances from it.",
    ),
    "schedule": (f"{_HERE}.schedule:schedule", "Announce an event of TYPE for each TARGET."),
    "rollout": (
        f"{_HERE}.rollout:rollout",
        "Plan and run maintenance of many instances, one update domain at a time.",
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
    "evict": (f"{_HERE}.operations:evict", "Evict the Spot instance INSTANCE."),
    "replace": (
        f"{_HERE}.scale_sets:replace",
        "Replace INSTANCE, which belongs to a scale set, by a new instance.",
    ),
    "scale": (
        f"{_HERE}.scale_sets:scale",
        "Resize the scale set SET to CAPACITY instances.",
    ),
    "model": (
        f"{_HERE}.scale_sets:model",
        "Set how much notice instances of the scale set SET get before a delete or a reimage.",
    ),
    "upgrade": (
        f"{_HERE}.scale_sets:upgrade",
        "Give each INSTANCE of the scale set SET, or all of them, the latest model of the set.",
    ),
    "policy": (
        f"{_HERE}.scale_sets:policy",
        "Set which events of SCOPE start without waiting for an approval.",
    ),
    "events": (f"{_HERE}.events:events", "List the events that are not over, the newest first."),
    "event": (f"{_HERE}.events:event", "Show one event."),
    "approve": (f"{_HERE}.events:approve", "Approve the event ID, so that it may start now."),
    "cancel": (f"{_HERE}.events:cancel", "Cancel the event ID, which must not have started."),
    "postpone": (
        f"{_HERE}.events:postpone",
        "Cancel the event ID and announce another in its place, at a later time.",
    ),
    "watch": (f"{_HERE}.watch:watch", "Watch the fleet on a live screen until q or Ctrl-C."),
    "history": (
        f"{_HERE}.history:history",
        "List what happened, who did it and why, the newest first.",
    ),
    "scenario": (
        f"{_HERE}.scenario:scenario",
        "List, show and play scenarios: scripts of what happens to instances.",
    ),
    "fault": (
        f"{_HERE}.fault:fault",
        "Make the metadata endpoint send errors and wrong answers, in test fleets only.",
    ),
    "record": (
        f"{_HERE}.record:record",
        "Record what the metadata endpoint of this VM sends, one JSON object per line.",
    ),
    "check": (
        f"{_HERE}.check:check",
        "Run COMMAND, a handler of scheduled events, through test cases, and report its mistakes.",
    ),
    "driver": (
        f"{_HERE}.driver:driver",
        "List the drivers that are installed, and check one before it acts on real instances.",
    ),
    "clock": (
        f"{_HERE}.clock:clock",
        "Show the server's clock, and move it forward if it is virtual.",
    ),
    "network": (
        f"{_HERE}.network:network",
        "Connect instances to the metadata endpoint, so that none can pretend to be another.",
    ),
    "token": (
        f"{_HERE}.token:token",
        "Create, list and revoke the tokens that give access to the server.",
    ),
    "backup": (
        f"{_HERE}.backup:backup",
        "Save the store to FILE while the server goes on, and check the copy.",
    ),
    "verify": (
        f"{_HERE}.backup:verify",
        "Check the backup FILE, or the SQLite file of a store, and say what is in it.",
    ),
    "restore": (f"{_HERE}.backup:restore", "Fill a store with the backup FILE."),
    "migrate": (
        f"{_HERE}.migrate:migrate",
        "Migrate the store to the schema of this version, while nodes that use PostgreSQL run.",
    ),
    "azure-setup": (
        f"{_HERE}.azure_setup:azure_setup",
        "Set up az and the Azure SDKs so that they use this server.",
    ),
    "notification": (
        f"{_HERE}.notification:notification",
        "Manage the webhooks, chats and mail addresses that are notified of events.",
    ),
    "demo": (
        f"{_HERE}.demo:demo",
        "Show one example event, from its announcement to its end.",
    ),
    "agent": (
        "fairwarning.agent.cli.main:agent",
        "Run the agent, which drains this VM before each event and restores it afterwards.",
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
    """Announce impacts on virtual machines before they happen, as Azure's Scheduled Events do."""
