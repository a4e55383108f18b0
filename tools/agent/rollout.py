"""Reboots three web servers behind HAProxy one by one, under load, with the agent and without.

Theory of operation. Four VMs in networks of their own: three with nginx and an agent, one with
HAProxy. The server is where Azure's is, at 169.254.169.254:80, and its driver's webhook comes
back to this process, which pulls the plug of the VM in question: nginx and the agent are killed
in the middle of whatever they do, and both start again. Load runs all the time; each answer
takes a fifth of a second, so some are always under way.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.namespaces import run_in_vms
from tests.support.vms import Rig
from tools.agent.balancer import BALANCER, VMS, WEB, connect_all, start_balancer
from tools.agent.fleet import Fleet, Reboots, web_server
from tools.agent.load import Counts, Load
from tools.agent.machine import Machine
from tools.json_service import driver_service

_TIMEOUT_S = 150
_ROLLOUT_S_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    reboots: list[str]
    seconds: float
    answered: int
    failed: int
    slowest_s: float
    failures: dict[str, int]


def check_rollout() -> list[str]:
    found = {
        name: Metrics(**run_in_vms(roll, VMS, arguments={"agents": agents}, timeout_s=_TIMEOUT_S))
        for name, agents in {"without the agent": False, "with the agent": True}.items()
    }
    for name, each in found.items():
        assert sorted(each.reboots) == list(WEB), f"{name}: rebooted {each.reboots}"
        assert each.answered > 100, f"{name}: only {each.answered} requests were answered"
    bare, ours = found.values()
    assert bare.failed, "without the agent nothing failed, so this shows nothing"
    assert not ours.failed, f"with the agent {ours.failed} requests failed: {ours.failures}"
    return [_line(name, each) for name, each in found.items()]


def _line(name: str, each: Metrics) -> str:
    why = ", ".join(f"{count} {reason}" for reason, count in each.failures.items())
    return (
        f"{name}: {len(each.reboots)} VMs rebooted in {each.seconds:.0f} s, "
        f"{each.answered} requests answered, {each.failed} failed{f' ({why})' if why else ''}, "
        f"the slowest took {each.slowest_s:.1f} s"
    )


def roll(rig: Rig, *, agents: bool) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        connect_all(rig)
        machines = {each: Machine(rig, each, folder, has_agent=agents) for each in WEB}
        reboots = Reboots(machines)
        with (
            _stopped(machines.values()),
            driver_service(reboots.obey) as driver,
            web_server(folder, driver) as fleet,
        ):
            for machine in machines.values():
                machine.start()
            start_balancer(rig, folder)
            fleet.activate(rig)
            seconds, counts = _under_load(fleet)
        return asdict(_metrics(reboots.done, seconds, counts))


@contextmanager
def _stopped(machines: Iterable[Machine]) -> Iterator[None]:
    """Kills all machines at the end; one that still writes would hinder removing its folder."""
    try:
        yield
    finally:
        for machine in machines:
            machine.pull_the_plug()


def _under_load(fleet: Fleet) -> tuple[float, Counts]:
    with Load(VMS[BALANCER]) as load:
        load.wait_for(50)
        began = time.monotonic()
        fleet.roll_out(_ROLLOUT_S_MAX)
        seconds = time.monotonic() - began
        load.wait_for(50)
    return seconds, load.counts


def _metrics(reboots: list[str], seconds: float, counts: Counts) -> Metrics:
    return Metrics(
        reboots=reboots,
        seconds=seconds,
        answered=counts.answered,
        failed=sum(counts.failures.values()),
        slowest_s=counts.slowest_s,
        failures=dict(counts.failures),
    )
