"""The VMs of the rolling reboot, the network between them, and HAProxy in front."""

import socket
import subprocess
import time
from pathlib import Path

from pyroute2 import IPRoute  # type: ignore[import-untyped]

from tests.support.namespaces import ENDPOINT
from tests.support.vms import Rig
from tools.debian_packages import program

BALANCER = "balancer"
WEB = ("web-0", "web-1", "web-2")
VMS = {BALANCER: "10.88.0.2", "web-0": "10.88.0.10", "web-1": "10.88.0.11", "web-2": "10.88.0.12"}
FRONT_PORT, SOCKET_PORT = 8080, 9999
BODY_BYTES = 65_536
"""The size of an answer, which nginx takes a fifth of a second to send."""
_ON_LINK = 4
"""The gateway is at the other end of the wire, whatever its address."""
_HAPROXY = """
global
  stats socket ipv4@{address}:{socket_port} level admin
defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
  option httpchk GET /health
  default-server check inter 1s
frontend front
  bind {address}:{front_port}
  default_backend web
backend web
  balance roundrobin
{servers}
"""


def connect_all(rig: Rig) -> None:
    """Lets the VMs reach each other, through the network that the endpoint is in."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    for vm in rig.vms.values():
        with IPRoute(netns=f"/proc/{vm.pid}/ns/net") as inner:
            index = inner.link_lookup(ifname="eth0")[0]
            inner.route("add", dst="10.88.0.0/24", gateway=ENDPOINT, oif=index, flags=_ON_LINK)


def start_balancer(rig: Rig, folder: Path) -> None:
    address = VMS[BALANCER]
    settings = folder / "haproxy.cfg"
    settings.write_text(
        _HAPROXY.format(
            address=address,
            socket_port=SOCKET_PORT,
            front_port=FRONT_PORT,
            servers="\n".join(f"  server {name} {VMS[name]}:80" for name in WEB),
        )
    )
    command = rig.vms[BALANCER].command([program("haproxy"), "-db", "-q", "-f", str(settings)])
    rig.start(command, stdout=subprocess.DEVNULL)
    wait_until_open(address, FRONT_PORT)


def wait_until_open(host: str, port: int, patience_s: float = 10) -> None:
    """Waits until the port is open, because HAProxy does not say when it is ready."""
    ends_s = time.monotonic() + patience_s
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError as problem:
            if time.monotonic() > ends_s:
                raise AssertionError(f"{host}:{port} does not open: {problem}") from None
            time.sleep(0.05)
        else:
            return
