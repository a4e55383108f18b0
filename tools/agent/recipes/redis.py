"""Runs examples/agent/redis-sentinel.toml beside two redis-servers and three Sentinels."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.namespaces import run_in_vms
from tests.support.vms import Rig
from tools.agent.nodes import Agent
from tools.agent.recipes.drain import ALL_DONE, Fleet, fleet_of, start_agent
from tools.agent.recipes.redis_writer import KEY, Writer
from tools.agent.recipes.vms import DaemonVm, daemon_vms, wait_until

VMS = {"redis-0": "10.88.0.10", "redis-1": "10.88.0.11", "arbiter": "10.88.0.12"}
_FIRST, _SECOND = "redis-0", "redis-1"
_SERVER = """
bind * -::*
protected-mode no
dir /var/lib/redis
pidfile /run/redis.pid
"""
_SENTINEL = f"""
bind * -::*
protected-mode no
dir /var/lib/redis
sentinel monitor mymaster {VMS[_FIRST]} 6379 2
"""


def check_redis() -> list[str]:
    lines: list[str] = run_in_vms(play, VMS)
    return lines


def play(rig: Rig) -> list[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        daemon_vms(rig, Path(folder)) as vms,
        fleet_of(vms, Path(folder)) as fleet,
    ):
        _start(vms)
        agent = start_agent(vms[_FIRST], "redis-sentinel.toml", "redis-handover")
        lines = [
            _hands_over(fleet, vms, agent),
            _goes_at_once_as_a_replica(fleet, vms, agent),
            _does_not_approve_without_a_replica(fleet, vms),
        ]
        version = vms[_FIRST].ask("redis-server", "--version").split()[2]
        return [*lines, f"tried with Redis {version.removeprefix('v=')}"]


def _start(vms: Mapping[str, DaemonVm]) -> None:
    replica = f"replicaof {VMS[_FIRST]} 6379\n"
    for name, more in {_FIRST: "", _SECOND: replica}.items():
        vms[name].path("/var/lib/redis").mkdir()
        vms[name].write("/var/lib/redis/redis.conf", _SERVER + more)
        _start_server(vms[name])
    # Sentinel asks a master for its replicas when it starts, and then only every ten seconds.
    wait_until(lambda: "online" in _info(vms[_FIRST], "slave0"), "the replication")
    for vm in vms.values():
        vm.write("/var/lib/redis/sentinel.conf", _SENTINEL)
        vm.start(["redis-server", "/var/lib/redis/sentinel.conf", "--sentinel"])
    wait_until(lambda: all(_knows_all(each) for each in vms.values()), "three Sentinels")


def _start_server(vm: DaemonVm) -> None:
    vm.start(["redis-server", "/var/lib/redis/redis.conf"])
    wait_until(lambda: vm.run("redis-cli", "-e", "ping").returncode == 0, "Redis")


def _stop_server(vm: DaemonVm) -> None:
    """Kills Redis as the end of the VM does, without a chance to save anything."""
    vm.ask("kill", "-KILL", vm.path("/run/redis.pid").read_text().strip())


def _info(vm: DaemonVm, key: str) -> str:
    lines = vm.ask("redis-cli", "-e", "info", "replication").splitlines()
    return next((each.partition(":")[2].strip() for each in lines if each.startswith(key)), "")


def _knows_all(sentinel: DaemonVm) -> bool:
    """Whether this Sentinel knows the replica and the other two Sentinels."""
    ask = ("redis-cli", "-p", "26379", "sentinel", "master", "mymaster")
    said = sentinel.run(*ask).stdout.splitlines()
    known = dict(zip(said[::2], said[1::2], strict=False))
    return known.get("num-slaves") == "1" and known.get("num-other-sentinels") == "2"


def _hands_over(fleet: Fleet, vms: Mapping[str, DaemonVm], agent: Agent) -> str:
    seen: list[str] = []

    def reboot() -> None:
        seen.extend(_info(vms[each], "role") for each in (_FIRST, _SECOND))
        _stop_server(vms[_FIRST])
        _start_server(vms[_FIRST])
        seen.append(_info(vms[_FIRST], "role"))

    fleet.impact = reboot
    with Writer(VMS["arbiter"]) as writer:
        writer.wait_for_more(100)
        id = fleet.schedule_reboot(_FIRST)
        agent.wait_until_it_says(ALL_DONE)
        writer.wait_for_more(100)
    assert fleet.approvals(id) == [f"instance:{_FIRST}"], agent.said
    assert seen == ["slave", "master", "slave"], f"{seen}; {agent.said}"
    assert writer.masters == [VMS[_FIRST], VMS[_SECOND]], writer.masters
    kept = vms[_SECOND].ask("redis-cli", "lrange", KEY, "0", "-1").split()
    lost = set(writer.acknowledged) - {int(each) for each in kept}
    assert not lost, f"{len(lost)} of {len(writer.acknowledged)} writes are lost: {agent.said}"
    return (
        f"the replica is the master before the approval; of {len(writer.acknowledged)} writes none "
        f"is lost, and the longest took {writer.longest_s:.1f} s; the old master comes back as a "
        "replica"
    )


def _goes_at_once_as_a_replica(fleet: Fleet, vms: Mapping[str, DaemonVm], agent: Agent) -> str:
    fleet.impact = lambda: None
    id = fleet.schedule_reboot(_FIRST)
    agent.wait_until_it_says(ALL_DONE)
    assert fleet.approvals(id) == [f"instance:{_FIRST}"], agent.said
    assert [_info(vms[each], "role") for each in (_FIRST, _SECOND)] == ["slave", "master"]
    return "a replica is approved at once, and the master stays where it is"


def _does_not_approve_without_a_replica(fleet: Fleet, vms: Mapping[str, DaemonVm]) -> str:
    master = vms[_SECOND]
    _stop_server(vms[_FIRST])
    replicas = ("redis-cli", "-p", "26379", "sentinel", "replicas", "mymaster")
    wait_until(lambda: "disconnected" in master.ask(*replicas), "Sentinel's view of the replica")
    agent = start_agent(master, "redis-sentinel.toml", "redis-handover")
    id = fleet.schedule_reboot(_SECOND)
    agent.wait_until_it_says("not approved, because")
    why = "redis-handover ended with code 1: NOGOODSLAVE No suitable replica to promote"
    assert why in agent.said, agent.said
    assert fleet.event(id)["phase"] == "scheduled", agent.said
    assert _info(master, "role") == "master", agent.said
    master.ask("redis-cli", "-e", "rpush", KEY, "after the failure")
    fleet.approve(id)
    agent.wait_until_it_says(ALL_DONE)
    assert fleet.approvals(id) == ["operator:local"], agent.said
    return "without a replica: said so, not approved, and the master takes writes as before"
