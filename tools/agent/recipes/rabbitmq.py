"""Runs examples/agent/rabbitmq.toml beside a cluster of three RabbitMQ nodes."""

import secrets
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.namespaces import run_in_vms
from tests.support.patience import HANG_S
from tests.support.vms import Rig
from tools.agent.balancer import wait_until_open
from tools.agent.nodes import Agent
from tools.agent.recipes.drain import ALL_DONE, Fleet, fleet_of, start_agent
from tools.agent.recipes.vms import DaemonVm, daemon_vms, wait_until

VMS = {"mq-0": "10.88.0.10", "mq-1": "10.88.0.11", "mq-2": "10.88.0.12"}
_FIRST, _SECOND, _THIRD = VMS
_PORT = 5672
_QUEUE = '{resource, <<"/">>, queue, <<"jobs">>}'
_DECLARE = (
    f"rabbit_amqqueue:declare({_QUEUE}, true, false, "
    '[{<<"x-queue-type">>, longstr, <<"quorum">>}], none, <<"check">>).'
)
"""Declares a quorum queue, as a client does; then no client library is needed."""
_LEAD = (
    f"{{ok, Queue}} = rabbit_amqqueue:lookup({_QUEUE}), "
    f"rabbit_quorum_queue:transfer_leadership(Queue, 'rabbit@{_FIRST}')."
)
_ALONE = """#!/bin/sh
HOME=/var/lib/rabbitmq exec /usr/lib/rabbitmq/bin/{name} "$@"
"""
_PROGRAMS = ("rabbitmq-diagnostics", "rabbitmq-server", "rabbitmq-upgrade", "rabbitmqctl")


def check_rabbitmq() -> list[str]:
    lines: list[str] = run_in_vms(play, VMS)
    return lines


def play(rig: Rig) -> list[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        daemon_vms(rig, Path(folder)) as vms,
        fleet_of(vms, Path(folder)) as fleet,
    ):
        _start(vms)
        agent = start_agent(vms[_FIRST], "rabbitmq.toml")
        lines = [
            _does_not_drain_what_a_queue_needs(fleet, vms, agent),
            _drains_and_revives(fleet, vms, agent),
        ]
        version = vms[_FIRST].ask("rabbitmqctl", "--quiet", "version")
        return [*lines, f"tried with RabbitMQ {version}"]


def _start(vms: Mapping[str, DaemonVm]) -> None:
    nodes = "cluster_formation.classic_config.nodes.{number} = rabbit@{name}\n"
    settings = "cluster_formation.peer_discovery_backend = classic_config\n" + "".join(
        nodes.format(number=number, name=name) for number, name in enumerate(vms, 1)
    )
    cookie = secrets.token_hex(10)
    for vm in vms.values():
        vm.path("/var/log/rabbitmq").mkdir()
        vm.write("/var/lib/rabbitmq/.erlang.cookie", cookie, 0o400)
        vm.write("/run/rabbitmq.conf", settings)
        _let_rabbitmq_run(vm)
        vm.start(["env", "RABBITMQ_CONFIG_FILE=/run/rabbitmq", "rabbitmq-server"])
    for vm in vms.values():
        wait_until_open(vm.address, _PORT, HANG_S)
    vms[_FIRST].ask("rabbitmqctl", "await_online_nodes", str(len(vms)))
    vms[_FIRST].ask("rabbitmqctl", "eval", _DECLARE)


def _let_rabbitmq_run(vm: DaemonVm) -> None:
    """Gives RabbitMQ its folders. Debian's commands become the user `rabbitmq` first, which they
    cannot in a user namespace that has one user; there they run as that one.
    """
    if _users() > 1:
        vm.ask("chown", "-R", "rabbitmq:rabbitmq", "/var/lib/rabbitmq", "/var/log/rabbitmq")
    else:
        for name in _PROGRAMS:
            vm.write(f"/usr/local/sbin/{name}", _ALONE.format(name=name), 0o755)


def _users() -> int:
    """Returns how many users this user namespace has."""
    return int(Path("/proc/self/uid_map").read_text().split()[2])


def _does_not_drain_what_a_queue_needs(
    fleet: Fleet, vms: Mapping[str, DaemonVm], agent: Agent
) -> str:
    vms[_THIRD].ask("rabbitmqctl", "stop_app")
    id = fleet.schedule_reboot(_FIRST)
    agent.wait_until_it_says("trying again")
    why = f"queue 'jobs' in vhost '/' would lose quorum if node rabbit@{_FIRST} is stopped"
    assert why in agent.said, agent.said
    assert fleet.event(id)["phase"] == "scheduled", agent.said
    assert _takes_clients(vms[_FIRST]), agent.said
    fleet.approve(id)
    agent.wait_until_it_says(ALL_DONE)
    assert fleet.approvals(id) == ["operator:local"], agent.said
    assert "rabbitmq-upgrade" not in agent.said.replace("left out: run rabbitmq-upgrade drain", "")
    vms[_THIRD].ask("rabbitmqctl", "start_app")
    return "while a queue needs the node for its majority: said so, not drained, not approved"


def _drains_and_revives(fleet: Fleet, vms: Mapping[str, DaemonVm], agent: Agent) -> str:
    vms[_FIRST].ask("rabbitmqctl", "eval", _LEAD)
    wait_until(lambda: _leader(vms[_SECOND]) == f"rabbit@{_FIRST}", "the queue's leader")
    seen: list[object] = []
    fleet.impact = lambda: seen.extend([_takes_clients(vms[_FIRST]), _leader(vms[_SECOND])])
    id = fleet.schedule_reboot(_FIRST)
    agent.wait_until_it_says(ALL_DONE)
    assert fleet.approvals(id) == [f"instance:{_FIRST}"], agent.said
    takes_clients, leader = seen
    assert not takes_clients, agent.said
    assert leader in (f"rabbit@{_SECOND}", f"rabbit@{_THIRD}"), f"{leader}; {agent.said}"
    wait_until(lambda: _takes_clients(vms[_FIRST]), "the open port")
    return "a queue's leader moves and the port closes before the approval; the port opens after it"


def _takes_clients(vm: DaemonVm) -> bool:
    """Whether RabbitMQ begins to speak with a client."""
    try:
        with socket.create_connection((vm.address, _PORT), timeout=HANG_S) as connection:
            connection.sendall(b"AMQP\0\0\x09\x01")
            return bool(connection.recv(1))
    except ConnectionError:
        return False


def _leader(vm: DaemonVm) -> str:
    """Returns the node that leads the queue."""
    lines = vm.ask("rabbitmqctl", "--quiet", "list_queues", "name", "leader").splitlines()
    return dict(each.split("\t") for each in lines)["jobs"]
