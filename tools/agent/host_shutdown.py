"""A shutdown waits for the agent behind a delay lock of the real systemd-logind.

logind runs on a bus of its own, where a stand-in of systemd refuses to start `reboot.target`. So
logind announces the shutdown, waits for the lock, fails to start it, and calls it off: nothing is
ever shut down. What a real systemd does after that is in `./test systemd`.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

from tests.support.namespaces import run_in_vms
from tests.support.processes import clean_environment, running
from tests.support.vms import Rig
from tools.agent import systemd_stand_in
from tools.agent.nodes import PATIENCE_S, Agent, Fleet, node_server
from tools.debian_packages import program
from tools.systemd.json_lines import wait_until

_LOGIND = "/lib/systemd/systemd-logind"
_VM = "vm"
_BUS = """
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
</busconfig>
"""
_START = """
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/logind.conf.d
printf '[Login]\\nInhibitDelayMaxSec=1min\\n' > /run/systemd/logind.conf.d/delay.conf
exec {logind}
"""
_CONFIG = '''
state = "{home}/agent.json"
listen = ""

[host_shutdown]
delay = true

[[rule]]
name = "drain"
types = ["Reboot"]

  [[rule.scheduled]]
  run = """
    touch {home}/draining
    until [ -e {home}/go ]; do sleep 0.1; done
    echo drained >> {home}/log"""
  undo = "rm -f {home}/draining; echo undone >> {home}/log"
  timeout = "{timeout}"
'''


def check_host_shutdown() -> list[str]:
    lines: list[str] = run_in_vms(play, {}, timeout_s=300)
    return lines


def play(_: Rig) -> list[str]:
    with (
        tempfile.TemporaryDirectory() as name,
        node_server(Path(name), [_VM]) as fleet,
        _logind(Path(name)) as bus,
    ):
        home = Path(name)
        lines = [_check_config(home, bus)]
        lines += _drain(home, fleet, bus)
        lines += _kill(home, fleet, bus)
    return [*lines, _ask("--version").splitlines()[0]]


def _check_config(home: Path, bus: str) -> str:
    assert _warnings(home, bus, "30s") == []
    (said,) = _warnings(home, bus, "5m")
    assert "logind lets a shutdown wait 1 min" in said, said
    (said,) = _warnings(home, f"{bus}-none", "30s")
    assert "the system's bus cannot be reached" in said, said
    return "check-config warns if logind waits less long than the drain may take"


def _drain(home: Path, fleet: Fleet, bus: str) -> Iterator[str]:
    with _agent(home, fleet, bus) as agent:
        agent.wait_until_it_says("a shutdown of the host waits for the drain, at most 1 min")
        agent.wait_until_it_says("watching")
        assert "Fairwarning agent" in _manager(bus, "ListInhibitors")
        _manager(bus, "Reboot", "b", "false")
        wait_until("the drain has begun", (home / "draining").exists, PATIENCE_S)
        assert _is_shutting_down(bus), "the shutdown did not wait for the drain"
        (home / "go").touch()
        agent.wait_until_it_says("nothing is left to drain, so the shutdown goes on")
        yield "`Reboot` waited until the drain was done"
        agent.wait_until_it_says("all is done and undone")
        assert (home / "log").read_text().split() == ["drained", "undone"]
        assert (home / "started").read_text() == "reboot.target: drained\n"
        assert not _is_shutting_down(bus)
        wait_until("the lock is there", lambda: _is_locked(bus), PATIENCE_S)
        yield "the shutdown was called off: all was undone, and the lock taken again"


def _kill(home: Path, fleet: Fleet, bus: str) -> Iterator[str]:
    for name in ("go", "log"):
        (home / name).unlink()
    with _agent(home, fleet, bus) as agent:
        agent.wait_until_it_says("watching")
        _manager(bus, "Reboot", "b", "false")
        wait_until("the drain has begun", (home / "draining").exists, PATIENCE_S)
        agent.kill()
    wait_until("the shutdown goes on", lambda: not _is_shutting_down(bus), PATIENCE_S)
    (home / "go").touch()
    with _agent(home, fleet, bus) as agent:
        agent.wait_until_it_says("all is done and undone")
    assert (home / "log").read_text().split()[-1] == "undone"
    yield "killed in the middle of the drain: the shutdown went on, and the next agent undid it"


@contextmanager
def _logind(home: Path) -> Iterator[str]:
    """Runs a bus and logind during the block, which gets the address of the bus."""
    path = home / "bus"
    (home / "bus.conf").write_text(_BUS.format(path=path))
    bus = f"unix:path={path}"
    daemon = [
        program("dbus-daemon"),
        f"--config-file={home / 'bus.conf'}",
        "--nofork",
        "--nopidfile",
    ]
    # In a user namespace, where a program could not reboot this machine even if it wanted to.
    inside = ["unshare", "--user", "--map-root-user", "--mount", "--propagation=private"]
    logind = [*inside, "sh", "-ec", _START.format(logind=_LOGIND)]
    with (home / "logind.log").open("w") as log, running(daemon, stderr=log):
        wait_until("the bus is there", path.exists, PATIENCE_S, 0.05)
        stand_in = [sys.executable, "-m", systemd_stand_in.__name__]
        files = [str(home / "log"), str(home / "started")]
        with (
            running([*stand_in, *files], stderr=log, env=_environment(bus)),
            running(logind, stderr=log, env=_environment(bus)),
        ):
            try:
                wait_until("logind answers", lambda: _answers(bus), PATIENCE_S)
            except AssertionError as late:
                said = (home / "logind.log").read_text()
                raise AssertionError(f"{late}; {said}") from None
            yield bus


@contextmanager
def _agent(home: Path, fleet: Fleet, bus: str) -> Iterator[Agent]:
    command = [sys.executable, "-m", "fairwarning", "agent", "--config", str(_config(home, "30s"))]
    environment = {**_environment(bus), "FAIRWARNING_METADATA_URL": fleet.endpoint(_VM)}
    with running(command, stderr=PIPE, env=environment) as process:
        yield Agent(process)


def _config(home: Path, timeout: str) -> Path:
    (home / "agent.toml").write_text(_CONFIG.format(home=home, timeout=timeout))
    return home / "agent.toml"


def _warnings(home: Path, bus: str, timeout: str) -> list[str]:
    config = str(_config(home, timeout))
    command = [sys.executable, "-m", "fairwarning", "agent", "check-config", config, "--json"]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=True, env=_environment(bus)
    )
    found: list[str] = json.loads(done.stdout)["warnings"]
    return found


def _environment(bus: str) -> dict[str, str]:
    return {**clean_environment(), "DBUS_SYSTEM_BUS_ADDRESS": bus}


def _manager(bus: str, method: str, *arguments: str) -> str:
    place = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    return _ask("call", *place, method, *arguments, bus=bus)


def _is_locked(bus: str) -> bool:
    return "Fairwarning agent" in _manager(bus, "ListInhibitors")


def _is_shutting_down(bus: str) -> bool:
    place = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    return _ask("get-property", *place, "PreparingForShutdown", bus=bus).strip() == "b true"


def _answers(bus: str) -> bool:
    try:
        return not _is_shutting_down(bus)
    except AssertionError:
        return False


def _ask(*arguments: str, bus: str = "") -> str:
    command = [program("busctl"), "--system", *arguments]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env=_environment(bus)
    )
    assert done.returncode == 0, f"busctl {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout
