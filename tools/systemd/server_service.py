"""Starts, reloads, kills, restarts and stops the server under systemd, while clients poll it."""

from collections.abc import Callable, Iterator

from tools.systemd.context import BROUGHT
from tools.systemd.guest import Guest
from tools.systemd.json_lines import wait_until

SERVER = "fairwarning"
PATIENCE_S = 600.0
"""An emulated machine needs a minute to load the program, and its host may be busy."""
_POLLING = "/run/polling"
_NET_BIND_SERVICE = "400"
"""The set of capabilities that has only this one, as the kernel prints it."""


def start(guest: Guest) -> Iterator[str]:
    done = guest.finish(guest.begin(f"systemctl enable --now {SERVER}"), PATIENCE_S)
    assert done.code == 0, f"{done.errors} {guest.log_of(SERVER)}"
    assert guest.state_of(SERVER) == "active"
    status = guest.must(f"systemctl status --no-pager --lines=0 {SERVER}")
    assert 'Status: "ready http://127.0.0.1:80 control' in status, status
    yield "`systemctl enable --now` returned when it was ready; its status says where it listens"


def look_at_rights(guest: Guest) -> Iterator[str]:
    pid = _main_pid(guest)
    user = guest.must(f"stat -c %U /proc/{pid}")
    assert user == SERVER, f"the server runs as {user}"
    process = _fields(guest.must(f"cat /proc/{pid}/status"))
    wanted = {"CapEff": _NET_BIND_SERVICE, "CapBnd": _NET_BIND_SERVICE, "NoNewPrivs": "1"}
    found = {name: process[name].lstrip("0") for name in wanted}
    assert found == wanted, found
    assert process["Seccomp"] == "2", process["Seccomp"]
    limits = guest.must(f"grep 'Max open files' /proc/{pid}/limits").split()
    assert limits[3:5] == ["65536", "65536"], limits
    judged = guest.must(f"systemd-analyze security --no-pager {SERVER}")
    verdict = next(line for line in judged.splitlines() if "exposure level" in line)
    level = float(verdict.partition(": ")[2].split()[0])
    assert level <= 2.0, verdict
    yield f"it listens on port 80 as the dynamic user {user}, who may do that and nothing else"
    yield f"systemd-analyze security of the running service: {level} of 10"


def reload(guest: Guest) -> Iterator[str]:
    guest.must(f"mkdir {_POLLING}")
    guest.begin(f"exec python3 {BROUGHT}/guest/poll.py {_POLLING} 2>{_POLLING}/errors")
    _wait_for_polls(guest, 20)
    pid, before = _main_pid(guest), _children(guest)
    assert len(before) == 3, before
    done = guest.finish(guest.begin(f"systemctl reload {SERVER}"), PATIENCE_S)
    assert done.code == 0, f"{done.errors} {guest.log_of(SERVER)}"
    after = set(_children(guest)) - set(before)
    assert len(after) == 3, f"before {before}, after {_children(guest)}: {guest.log_of(SERVER)}"
    assert _main_pid(guest) == pid
    _wait_for_polls(guest, 20)
    assert _failures(guest) == [], _failures(guest)
    yield "`systemctl reload`: it returned with all processes replaced, and no poll failed"


def kill_a_worker(guest: Guest) -> Iterator[str]:
    _wait_for(guest, 3)
    victim = _children(guest)[-1]
    guest.must(f"kill -KILL {victim}")
    wait_until("the worker is back", lambda: _is_replaced(guest, victim), PATIENCE_S)
    _wait_for_polls(guest, 20)
    lost = _take_failures(guest)
    assert len(lost) <= 4, lost
    assert not any("refused" in each for each in lost), lost
    yield f"kill -9 of a worker: it was started again; {len(lost)} of 4 polls under way were lost"


def restart(guest: Guest) -> Iterator[str]:
    pid = _main_pid(guest)
    done = guest.finish(guest.begin(f"systemctl restart {SERVER}"), PATIENCE_S)
    assert done.code == 0, f"{done.errors} {guest.log_of(SERVER)}"
    assert _main_pid(guest) != pid
    _wait_for_polls(guest, 20)
    lost = _take_failures(guest)
    assert len(lost) <= 4, lost
    assert not any("refused" in each for each in lost), lost
    yield f"`systemctl restart`: new connections waited; {len(lost)} of 4 open ones were lost"


def kill_all(guest: Guest) -> Iterator[str]:
    pid = _main_pid(guest)
    guest.must(f"systemctl kill --signal=KILL {SERVER}")
    wait_until(
        "systemd has started it again",
        lambda: _main_pid(guest) not in (0, pid) and guest.state_of(SERVER) == "active",
        PATIENCE_S,
    )
    _wait_for_polls(guest, 20)
    lost = _take_failures(guest)
    assert len(lost) <= 4, lost
    assert not any("refused" in each for each in lost), lost
    yield f"kill -9 of all: systemd started it again; {len(lost)} of 4 open connections were lost"


def stop(guest: Guest) -> Iterator[str]:
    guest.must(f"systemctl stop {SERVER}")
    shown = guest.show(SERVER, "ActiveState", "Result", "ExecMainCode", "ExecMainStatus")
    clean = {"ActiveState": "inactive", "Result": "success", "ExecMainCode": "1"}
    assert shown == {**clean, "ExecMainStatus": "0"}, shown
    refused = "new ConnectionRefusedError(111, 'Connection refused')"
    wait_until("polls are refused", lambda: refused in _failures(guest), PATIENCE_S)
    yield "`systemctl stop`: it ended by itself with code 0, and its port is closed"


def _main_pid(guest: Guest) -> int:
    return int(guest.show(SERVER, "MainPID")["MainPID"])


def _children(guest: Guest) -> list[int]:
    """Returns the processes of the supervisor, oldest first."""
    pid = _main_pid(guest)
    return [int(each) for each in guest.must(f"cat /proc/{pid}/task/{pid}/children").split()]


def _wait_for(guest: Guest, number: int) -> None:
    """Waits until replaced processes have ended, and only this many are left."""
    wait_until(f"{number} processes", lambda: len(_children(guest)) == number, PATIENCE_S)


def _is_replaced(guest: Guest, victim: int) -> bool:
    children = _children(guest)
    return len(children) == 3 and victim not in children


def _wait_for_polls(guest: Guest, number: int) -> None:
    """Waits until this many more polls have been answered."""
    wait_until("polls begin", lambda: guest.run(f"cat {_POLLING}/polls").code == 0, PATIENCE_S)
    first = _polls(guest)
    wait_until("polls are answered", lambda: _polls(guest) >= first + number, PATIENCE_S)


def _polls(guest: Guest) -> int:
    return int(guest.must(f"cat {_POLLING}/polls"))


def _failures(guest: Guest) -> list[str]:
    return guest.run(f"cat {_POLLING}/failures").output.splitlines()


def _take_failures(guest: Guest) -> list[str]:
    """Returns the failures since the last call."""
    found = _failures(guest)
    guest.must(f"rm -f {_POLLING}/failures")
    return found


def _fields(text: str) -> dict[str, str]:
    split = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in split}


SERVER_PARTS: tuple[Callable[[Guest], Iterator[str]], ...] = (
    start,
    look_at_rights,
    reload,
    kill_a_worker,
    restart,
    kill_all,
    stop,
)
