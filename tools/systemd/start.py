"""Checks the start of the service, and that it has no right that it does not need."""

from collections.abc import Callable, Iterator

from tools.systemd.context import AGENT, PATIENCE_S, Context
from tools.systemd.guest import Guest
from tools.systemd.json_lines import wait_until
from tools.systemd.machine import Machine
from tools.systemd.server import Server


def start_before_the_server(machine: Machine, serve: Callable[[], Server]) -> Iterator[str]:
    """Checks that `systemctl enable --now` returns only once the agent knows its VM."""
    guest = machine.guest
    starting = guest.begin(f"systemctl enable --now {AGENT}")
    asked = "cannot ask who this VM is"
    wait_until(
        f"the agent says {asked!r}",
        lambda: any(asked in line for line in guest.log_of(AGENT)),
        PATIENCE_S,
    )
    assert guest.look(starting) is None, "systemctl returned before the agent was ready"
    assert guest.state_of(AGENT) == "activating"
    yield "without a server, `systemctl enable --now` waits and the service is activating"
    serve()
    done = guest.finish(starting, PATIENCE_S)
    assert done.code == 0, done.errors
    assert guest.state_of(AGENT) == "active", "systemctl returned, and the service is not active"
    status = guest.must(f"systemctl status --no-pager --lines=0 {AGENT}")
    assert 'Status: "watching"' in status, status
    yield "once the server answers, it returns; `systemctl status` says: watching"


def look_at_rights(context: Context) -> Iterator[str]:
    guest, pid = context.guest, context.agent_pid()
    user = context.agent_user()
    assert user == AGENT, f"the agent runs as {user}"
    process = _status(guest, pid)
    wanted = {"CapEff": "0", "CapBnd": "0", "NoNewPrivs": "1", "Seccomp": "2"}
    found = {name: process[name].lstrip("0") or "0" for name in wanted}
    assert found == wanted, found
    mode = guest.must("stat -c '%a %U' /var/lib/private/fairwarning")
    assert mode == f"700 {AGENT}", mode
    judged = guest.must(f"systemd-analyze security --no-pager {AGENT}")
    verdict = next(line for line in judged.splitlines() if "exposure level" in line)
    level = verdict.partition(": ")[2].split()[0]
    yield f"it runs as the dynamic user {user}, no capabilities, system calls filtered"
    yield f"systemd-analyze security of the running service: {level} of 10"


def _status(guest: Guest, pid: int) -> dict[str, str]:
    lines = guest.must(f"cat /proc/{pid}/status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
