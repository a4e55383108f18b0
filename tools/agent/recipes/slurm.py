"""Runs examples/agent/slurm.toml beside slurmctld, slurmd and munged."""

import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.namespaces import run_in_vms
from tests.support.vms import Rig
from tools.agent.nodes import Agent
from tools.agent.recipes.drain import ALL_DONE, Fleet, fleet_of, start_agent
from tools.agent.recipes.vms import DaemonVm, daemon_vms, wait_until

VMS = {"control": "10.88.0.2", "node-0": "10.88.0.10"}
_SETTINGS = """
ClusterName=check
SlurmctldHost=control
SlurmUser=root
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=1
NodeName=node-0 CPUs=1
PartitionName=main Nodes=ALL Default=YES
PartitionName=other Nodes=ALL
"""
_NODE = "node-0"
_SHORT_NOTICE = "15s"
_JOB = "until [ -e {flag} ]; do sleep 0.2; done"


def check_slurm() -> list[str]:
    # In a user namespace of an ordinary user the kernel forbids setgroups, and both daemons end.
    assert os.geteuid() == 0, "slurmctld and slurmd drop their groups, so this check needs root"
    lines: list[str] = run_in_vms(play, VMS)
    return lines


def play(rig: Rig) -> list[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        daemon_vms(rig, Path(folder)) as vms,
        fleet_of(vms, Path(folder)) as fleet,
    ):
        cluster = _Cluster(vms)
        agent = start_agent(cluster.node, "slurm.toml", "slurm-node")
        lines = [
            _drains_and_resumes(fleet, cluster, agent),
            _leaves_a_drain_of_somebody_else(fleet, cluster, agent),
            _does_not_approve_over_a_job(fleet, cluster, agent),
        ]
        return [*lines, f"tried with {cluster.node.ask('slurmd', '-V')}"]


class _Cluster:
    def __init__(self, vms: Mapping[str, DaemonVm]) -> None:
        self.node = vms[_NODE]
        self._control = vms["control"]
        key = secrets.token_hex(64)
        for vm in vms.values():
            vm.write("/etc/munge/munge.key", key, 0o400)
            vm.write("/etc/slurm/slurm.conf", _SETTINGS)
            for folder in ("/run/munge", "/var/lib/munge", "/var/log/munge", "/var/lib/slurm"):
                vm.path(folder).mkdir()
            # The folders belong to root here, and not to a user of its own.
            vm.ask("munged", "--force")
        self._control.path("/var/lib/slurm/slurmctld").mkdir()
        self._control.start(["slurmctld", "-D"])
        self.start_node()

    def start_node(self) -> None:
        self.node.start(["slurmd", "-D"])
        wait_until(lambda: self.state() in ("idle", "drained"), "slurmd's registration")

    def restart_node(self) -> None:
        pid = self.node.path("/run/slurmd.pid").read_text().strip()
        self.node.ask("kill", pid)
        wait_until(lambda: not self.node.path(f"/proc/{pid}").exists(), "the end of slurmd")
        self.start_node()

    def state(self) -> str:
        return self._control.run("sinfo", "-h", "-n", _NODE, "-o", "%T").stdout.strip()

    def reason(self) -> str:
        return self._control.ask("sinfo", "-h", "-n", _NODE, "-o", "%E")

    def set_state(self, state: str, *reason: str) -> None:
        self._control.ask("scontrol", "update", f"nodename={_NODE}", f"state={state}", *reason)

    def submit(self, flag: str) -> str:
        """Submits a job that runs until the file of this name exists, and returns its id."""
        script = ["--wrap", _JOB.format(flag=flag), "--output=/dev/null", "--chdir=/"]
        return self._control.ask("sbatch", "--parsable", *script)

    def phase(self, job: str) -> str:
        return self._control.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")

    def wait_for(self, job: str, phase: str) -> None:
        wait_until(lambda: self.phase(job) == phase, f"job {job} {phase}")


def _drains_and_resumes(fleet: Fleet, cluster: _Cluster, agent: Agent) -> str:
    first, second = cluster.submit("/run/first"), cluster.submit("/run/second")
    cluster.wait_for(first, "RUNNING")
    seen: list[str] = []

    def reboot() -> None:
        seen.extend([cluster.state(), cluster.phase(first), cluster.phase(second)])
        cluster.restart_node()

    fleet.impact = reboot
    id = fleet.schedule_reboot(_NODE)
    wait_until(lambda: cluster.state() == "draining", "the drain")
    assert fleet.event(id)["phase"] == "scheduled", fleet.event(id)
    cluster.node.write("/run/first", "")
    agent.wait_until_it_says(ALL_DONE)
    said = f"{fleet.event(id)}; {seen}; {agent.said}"
    assert fleet.approvals(id) == [f"instance:{_NODE}"], said
    assert seen == ["drained", "COMPLETED", "PENDING"], said
    cluster.wait_for(second, "RUNNING")
    cluster.node.write("/run/second", "")
    cluster.wait_for(second, "COMPLETED")
    return "the running job ends, then the Reboot is approved; the waiting job starts after it"


def _leaves_a_drain_of_somebody_else(fleet: Fleet, cluster: _Cluster, agent: Agent) -> str:
    cluster.set_state("drain", "reason=broken fan")
    fleet.impact = lambda: None
    id = fleet.schedule_reboot(_NODE)
    agent.wait_until_it_says(ALL_DONE)
    assert fleet.approvals(id) == [f"instance:{_NODE}"], agent.said
    assert (cluster.state(), cluster.reason()) == ("drained", "broken fan"), agent.said
    cluster.set_state("resume")
    return "a node that somebody had drained is approved, and stays drained for his reason"


def _does_not_approve_over_a_job(fleet: Fleet, cluster: _Cluster, agent: Agent) -> str:
    job = cluster.submit("/run/third")
    cluster.wait_for(job, "RUNNING")
    id = fleet.schedule_reboot(_NODE, _SHORT_NOTICE)
    agent.wait_until_it_says(ALL_DONE)
    assert not fleet.approvals(id), agent.said
    assert "cut off: run /usr/local/sbin/slurm-node drain (no time is left" in agent.said, (
        agent.said
    )
    assert f"it last said: waiting for job {job}" in agent.said, agent.said
    assert cluster.phase(job) == "RUNNING", agent.said
    # A star says that Slurm waits for slurmd's next sign of life, as it does after each resume.
    assert cluster.state().rstrip("*") == "allocated", cluster.state()
    return "a job that outlasts the notice: said so, not approved, and resumed afterwards"
