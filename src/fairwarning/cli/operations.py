"""`fairwarning restart`, `stop`, `delete` and the other operations of an instance's owner."""

import sys

import click

from fairwarning.cli.common_options import Session, confirm, connected, why_option, yes_option
from fairwarning.cli.completion import complete_instance
from fairwarning.cli.wait import conclude, wait_option


def _operation(name: str, told: str, example: str = "web-0") -> click.Command:
    epilog = (
        f"\b\nExamples:\n  fairwarning {name} {example}\n"
        f"  fairwarning {name} {example} --wait --why 'it hangs'\n"
    )

    @click.command(name, help=told, epilog=epilog)
    @click.argument("instance", shell_complete=complete_instance)
    @yes_option
    @wait_option
    @why_option
    @connected
    def command(session: Session, instance: str, yes: bool, wait: bool, why: str | None) -> None:
        if name == "delete" and not yes and sys.stdin.isatty():
            confirm(f"Delete {instance}?", yes=False)
        event = session.api.post("instances", instance, name, why=why)
        conclude(session, event, wait=wait)

    return command


_NOTICE = (
    "\n\nIf instances of its scope poll the endpoint, this announces an event and happens after "
    "the notice or an approval. Otherwise it happens at once."
)
_POWER = "\n\nIt happens at once: a change of power is not announced."
restart = _operation("restart", f"Restart INSTANCE.{_NOTICE}")
redeploy = _operation("redeploy", f"Move INSTANCE to another host.{_NOTICE}")
reimage = _operation(
    "reimage",
    "Give INSTANCE a new disk, and the latest model of its scale set.\n\nIf its model has a "
    "reimage notice, this announces an event first. Otherwise it happens at once.",
)
start = _operation("start", f"Start INSTANCE.{_POWER}")
stop = _operation("stop", f"Stop INSTANCE; it keeps its host.{_POWER}")
deallocate = _operation("deallocate", f"Stop INSTANCE and give its host back.{_POWER}")
delete = _operation(
    "delete",
    "Delete INSTANCE.\n\nIf its scale set has a terminate_notice, an event announces this first. "
    "Otherwise it is deleted at once.\n\nOn a terminal, the command asks for confirmation.",
)
evict = _operation("evict", f"Evict the Spot instance INSTANCE.{_NOTICE}", "spot-0")
