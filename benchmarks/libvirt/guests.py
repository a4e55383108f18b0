"""Measures real guests: migrations beside `virsh migrate`, and a rolling reboot under load.

`benchmarks.libvirt` runs it on a machine of its own, as `python -m benchmarks.libvirt.guests FOLDER
PART`.
"""

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import libvirt

from benchmarks.cluster.nodes import row
from benchmarks.libvirt.balancer import Balancer
from tools.debian_packages import program
from tools.libvirt_guests.guests import Guest, wait_until
from tools.libvirt_guests.image import Image
from tools.libvirt_guests.lab import Lab, lab

MIGRATIONS = 5
WEB = 6


def migrate(folder: Path) -> None:
    """Redeploys two guests in turn. Only the program that moves them differs: their agents see the
    event, work and approve in both cases, because a guest that works has a longer downtime.
    """
    ours = Guest(name="web-0", address="10.0.0.10", has_disk=False)
    peer = Guest(name="web-1", address="10.0.0.11", has_disk=False)
    script = folder / "virsh-migrate"
    driver = {"type": "command", "run": str(script)}
    with lab(folder, Image.made_in(folder), [ours, peer], {peer.name: driver}) as made:
        _write_virsh_migrate(script, [host.uri for host in made.hosts])
        found: dict[str, list[int]] = {ours.name: [], peer.name: []}
        for guest in (ours, peer):
            guest.console.wait_for("its agent", lambda console: console.said("agent") > 0)
        for _ in range(MIGRATIONS):
            for name, downtimes in found.items():
                made.nodes[0].wait_until_completed(made.nodes[0].schedule("Redeploy", name))
                downtimes.append(_downtime_ms(made, name))
    row(f"downtime of a live migration, {MIGRATIONS} each: the driver", _listed(found[ours.name]))
    row("the same by `virsh migrate` in a `command` driver", _listed(found[peer.name]))


def _write_virsh_migrate(script: Path, uris: Sequence[str]) -> None:
    first, second = uris
    virsh = f"{program('virsh')} --quiet --connect"
    script.write_text(f"""\
#!/bin/sh
if {virsh} {first} domid "$FAIRWARNING_INSTANCES" >/dev/null 2>&1
then from={first} to={second}
else from={second} to={first}
fi
exec {virsh} $from migrate --live --persistent --undefinesource "$FAIRWARNING_INSTANCES" $to
""")
    script.chmod(0o755)


def _downtime_ms(made: Lab, name: str) -> int:
    stats = made.domain(name).jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED)
    downtime: int = stats["downtime"]
    return downtime


def _listed(found: Sequence[int]) -> str:
    return f"{statistics.median(found):.0f} ms ({min(found)} to {max(found)})"


def reboot(folder: Path, *, with_agent: bool) -> None:
    habits = "fw.qga" if with_agent else "fw.qga fw.bare"
    guests = [Guest(name=f"web-{n}", address=f"10.0.0.{10 + n}", habits=habits) for n in range(WEB)]
    settings = {guest.name: {"agent_time": "2m"} for guest in guests}
    with lab(folder, Image.made_in(folder), guests, settings) as made:
        node = made.nodes[0]
        ready = "agent" if with_agent else "tick"
        for guest in guests:
            guest.console.wait_for("it is up", lambda console: console.said(ready) > 0)
        with Balancer(made.hosts[0], [guest.address for guest in guests]) as balancer:
            wait_until("all are in use", lambda: balancer.used() == WEB)
            balancer.begin()
            for guest in guests:
                notice = {} if with_agent else {"notice": "1s"}
                node.wait_until_completed(node.schedule("Reboot", guest.name, **notice))
                assert len(guest.console.boots()) == 2, guest.console.boots()
                wait_until("all are in use", lambda: balancer.used() == WEB)
            balancer.end()
            told = "with the agent" if with_agent else "without it"
            row(
                f"rolling reboot of {WEB} guests under load, {told}: failed requests",
                f"{balancer.failed} of {balancer.sent}",
                "0" if with_agent else "",
            )


def main() -> None:
    folder, part = Path(sys.argv[1]), sys.argv[2]
    if part == "migrate":
        migrate(folder)
    else:
        reboot(folder, with_agent=part == "reboot-with-agent")


if __name__ == "__main__":
    main()
