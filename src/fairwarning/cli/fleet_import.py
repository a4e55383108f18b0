"""`fairwarning fleet import` writes a fleet file from what a hypervisor has."""

import asyncio

import click

from fairwarning.cli.click_types import duration
from fairwarning.cli.output import echo_json
from fairwarning.common.command_errors import Problem
from fairwarning.common.durations import parse_duration_ms
from fairwarning.common.escape import one_line


@click.group(
    "import", epilog="\b\nExample:\n  fairwarning fleet import libvirt --uri qemu:///system\n"
)
def import_fleet() -> None:
    """Write a fleet file from what a hypervisor has."""


@import_fleet.command(
    "libvirt",
    epilog="""\b
Examples:
  fairwarning fleet import libvirt --uri qemu:///system > fleet.toml
  fairwarning fleet import libvirt --uri test:///default --json
""",
)
@click.option(
    "--uri",
    default="qemu:///system",
    show_default=True,
    help="Connection URI of libvirt, as for `virsh --connect`.",
)
@click.option(
    "--timeout",
    type=duration,
    default="60s",
    show_default=True,
    metavar="D",
    help="How long libvirt may take to answer.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the fleet file, and what could not be found out, as JSON.",
)
def import_libvirt(uri: str, timeout: str, as_json: bool) -> None:
    """Print a fleet file with every domain of libvirt, and list what could not be found out.

    Each domain becomes a VM with the driver libvirt. Addresses come from the guest agent, or else
    from DHCP leases. Nothing is changed; look at the file, then run `fairwarning fleet plan`.
    """
    from fairwarning.drivers.libvirt.inventory import fleet_text  # noqa: PLC0415
    from fairwarning.drivers.libvirt.settings import SETTINGS  # noqa: PLC0415
    from fairwarning.engine.protocols import DriverFailed  # noqa: PLC0415

    problem = SETTINGS.problem({"uri": uri})
    if problem is not None:
        raise Problem(problem)
    from fairwarning.drivers.libvirt.read_inventory import read_guests  # noqa: PLC0415

    try:
        guests = asyncio.run(read_guests(uri, (parse_duration_ms(timeout) or 0) / 1000))
    except DriverFailed as failure:
        raise Problem(str(failure)) from None
    text, unknown = fleet_text(uri, guests)
    if as_json:
        echo_json({"fleet": text, "instances": len(guests), "unknown": unknown})
        return
    click.echo(text, nl=False)
    for each in unknown:
        click.echo(one_line(f"not known: {each}"), err=True)
