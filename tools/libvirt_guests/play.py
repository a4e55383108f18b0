"""Plays the impacts on guests, while the node that carries them out is killed.

Each part returns what was seen. Evidence is what the guests say on their consoles, and what
libvirt reports of the domains.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import libvirt

from fairwarning.drivers.libvirt.domain_xml import records_in
from fairwarning.drivers.libvirt.records import Step
from tools.libvirt_guests.guests import Console, Guest, state_of, wait_until
from tools.libvirt_guests.image import Image
from tools.libvirt_guests.lab import Lab, lab

FREEZE_S = 10
GUESTS = (
    Guest(name="web-0", address="10.0.0.10", habits="fw.qga"),
    Guest(name="web-1", address="10.0.0.11", habits="fw.acpi"),
    Guest(name="web-2", address="10.0.0.12", has_disk=False),
)
SETTINGS = {
    "web-0": {"agent_time": "5m"},
    "web-1": {"acpi_time": "5m"},
    "web-2": {"acpi_time": "3s"},
}


def ask(lab: Lab) -> Iterator[str]:
    for guest in GUESTS:
        guest.console.wait_for("the agent", lambda console: _watches(console, guest) == 1)  # noqa: B023
    yield f"{len(GUESTS)} guests booted and asked 169.254.169.254, which knew each by its address"


def freeze(lab: Lab) -> Iterator[str]:
    node, other = lab.nodes
    console = lab.guests["web-0"].console
    boots = console.boots()
    resumed = lab.events.seen("web-0", "resumed")  # libvirt counts each start as well.
    id = other.schedule("Freeze", "web-0", duration=f"{FREEZE_S}s")
    wait_until("it is frozen", lambda: lab.events.seen("web-0", "suspended") == 1)
    node.kill()
    assert console.said("drain", "Freeze", id) == 1, "it was frozen before it had drained"
    began_s, ticks = time.monotonic(), set()
    while lab.events.seen("web-0", "resumed") == resumed:
        said = console.path.read_bytes().count(b"tick ")
        if state_of(lab.connections[0], "web-0") == libvirt.VIR_DOMAIN_PAUSED:
            ticks.add(said)
    took_s = time.monotonic() - began_s
    _goes_on(lab, id)
    assert len(ticks) == 1, f"it went on while it was frozen: {ticks}"
    assert lab.events.seen("web-0", "suspended") == 1
    assert lab.events.seen("web-0", "resumed") == resumed + 1
    assert console.boots() == boots, "it was restarted"
    _assert_all_ticks(console)
    yield (
        f"Freeze, the node killed meanwhile: no tick for {took_s:.1f} s, until the other node let "
        "it go on, and none is lost"
    )


def restart_by_agent(lab: Lab) -> Iterator[str]:
    node, other = lab.nodes
    console = lab.guests["web-0"].console
    boots = len(console.boots())
    id = other.schedule("Reboot", "web-0")
    wait_until("it was asked to restart", lambda: _was_asked(lab, "web-0", id, "agent"))
    node.kill()
    assert console.said("drain", "Reboot", id) == 1, "it restarted before it had drained"
    _goes_on(lab, id)
    assert len(console.boots()) == boots + 1, console.boots()
    yield "Reboot by the guest agent, the node killed meanwhile: one new boot id"


def restart_by_acpi_and_reset(lab: Lab) -> Iterator[str]:
    obeys, ignores = lab.guests["web-1"], lab.guests["web-2"]
    ids = {guest.name: lab.nodes[1].schedule("Reboot", guest.name) for guest in (obeys, ignores)}
    _is_over(lab, obeys.name, ids[obeys.name])
    lab.nodes[1].wait_until_completed(ids[ignores.name])
    # This one has no disk, so its agent remembers nothing that it could put back.
    ignores.console.wait_for("its agent is back", lambda console: _watches(console, ignores) == 2)
    for guest in (obeys, ignores):
        assert len(guest.console.boots()) == 2, guest.console.boots()
    yield "Reboot by ACPI: one new boot id"
    yield "Reboot of a guest that ignores ACPI, by reset: one new boot id"


def migrate(lab: Lab) -> Iterator[str]:
    node, other = lab.nodes
    console = lab.guests["web-2"].console
    boots = console.boots()
    first = lab.connections[0]
    id = other.schedule("Redeploy", "web-2")
    wait_until("the migration is under way", lambda: _is_migrating(first, "web-2"))
    node.kill()
    _is_over(lab, "web-2", id)
    node.start()
    ticks = _assert_all_ticks(console)
    assert console.boots() == boots, "it was restarted"
    assert lab.where("web-2") == ["host-b"], lab.where("web-2")
    assert lab.events.seen("web-2", "moved") == 1
    yield (
        "Redeploy, the node killed during the migration: the guest is on the other libvirtd alone, "
        f"with the same boot id and no tick lost ({ticks}), and asks the node there"
    )


def reimage(lab: Lab) -> Iterator[str]:
    node, other = lab.nodes
    console = lab.guests["web-1"].console
    boots = len(console.boots())
    # The owner of a single VM is not warned, so the node that is asked begins at once.
    id: str = node.ask("POST", "/instances/web-1/reimage")["id"]
    wait_until("it begins", lambda: _has_begun(lab, "web-1", id))
    node.kill()  # The guest takes its time to shut down, so it is in the middle of it.
    other.wait_until_completed(id)
    node.start()
    console.wait_for("it boots", lambda console: len(console.boots()) > boots)
    console.wait_for_ticks()
    assert len(console.boots()) == boots + 1, console.boots()
    images = list(dict.fromkeys(each.words[3] for each in console.ticks()))
    assert images == ["first", "base"], images
    yield "reimage, the node killed meanwhile: one new boot id, on a disk that says `base`"


def delete(lab: Lab) -> Iterator[str]:
    node, other = lab.nodes
    console = lab.guests["web-0"].console
    id = other.schedule("Terminate", "web-0")
    wait_until("it is stopped", lambda: lab.events.seen("web-0", "stopped") == 1)
    node.kill()
    other.wait_until_completed(id)
    assert console.said("drain", "Terminate", id) == 1, "it was deleted before it had drained"
    assert lab.where("web-0") == [], lab.where("web-0")
    wait_until("libvirt says so", lambda: lab.events.seen("web-0", "deleted") == 1)
    assert not (lab.volumes / "web-0").exists(), "its volume is left"
    yield "Terminate, the node killed when the guest was off: neither domain nor volume is left"


PARTS: tuple[Callable[[Lab], Iterator[str]], ...] = (
    ask,
    freeze,
    restart_by_agent,
    restart_by_acpi_and_reset,
    migrate,
    reimage,
    delete,
)


def _goes_on(lab: Lab, id: str) -> None:
    """Waits until the other node has finished the event, and starts the killed one again."""
    event = lab.nodes[1].wait_until_completed(id)
    failed = [each["text"] for each in event["timeline"] if "failed" in each["text"]]
    assert failed == [], failed
    lab.nodes[0].start()
    _undone(lab.guests["web-0"], id)


def _is_over(lab: Lab, name: str, id: str) -> None:
    lab.nodes[1].wait_until_completed(id)
    _undone(lab.guests[name], id)


def _undone(guest: Guest, id: str) -> None:
    guest.console.wait_for(
        "the agent has put the drain back",
        lambda console: any(
            each.words[0] == "undo" and each.words[-1] == id for each in console.lines
        ),
    )
    guest.console.wait_for_ticks()


def _watches(console: Console, guest: Guest) -> int:
    """Returns how often the agent has begun to watch, after the endpoint told it its name."""
    wanted = ("watching", "http://169.254.169.254", "as", guest.name)
    return sum(each.words[-4:] == wanted for each in list(console.lines))


def _assert_all_ticks(console: Console) -> int:
    """Returns how many ticks there were since the last boot."""
    boot = console.boots()[-1]
    ticks = [int(each.words[1]) for each in console.ticks() if each.words[2] == boot]
    assert ticks == list(range(1, len(ticks) + 1)), "ticks were lost or said twice"
    return len(ticks)


def _has_begun(lab: Lab, name: str, id: str) -> bool:
    """Returns whether the driver's record says so, in the domain's own metadata."""
    record = records_in(lab.domain(name).XMLDesc(0)).get(id)
    return record is not None and record.step in {Step.BEGUN, Step.ACTED}


def _was_asked(lab: Lab, name: str, id: str, how: str) -> bool:
    record = records_in(lab.domain(name).XMLDesc(0)).get(id)
    return record is not None and record.asked == how


def _is_migrating(connection: Any, name: str) -> bool:
    domain = next(each for each in connection.listAllDomains() if each.name() == name)
    is_busy: bool = domain.jobInfo()[0] != libvirt.VIR_DOMAIN_JOB_NONE
    return is_busy


def main() -> int:
    folder, began_s = Path(sys.argv[1]), time.monotonic()
    try:
        with lab(folder, Image.made_in(folder), GUESTS, SETTINGS) as made:
            for part in PARTS:
                for line in part(made):
                    print(f"pass  {time.monotonic() - began_s:4.0f} s  {line}", flush=True)
    except AssertionError as failure:
        print(f"FAIL  {time.monotonic() - began_s:4.0f} s  {failure}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
