"""Checks that the client finds its service through a real DHCP server.

Two VMs: one whose interface has no address at all, and where another program holds port 68; and
one as outside a virtual network, which gets as far as the document.
"""

import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from pyroute2 import IPRoute  # type: ignore[import-untyped]

from tests.support.endpoint_process import serving_endpoint
from tests.support.namespaces import run_in_vms
from tests.support.vms import Rig, Vm
from tools.debian_packages import program

WIRE_SERVER = "168.63.129.16"
VMS: dict[str, list[str]] = {"bare": [], "classic": ["10.99.1.11"]}
_ASK_DHCP = "from fairwarning.client.dhcp import scheduled_events_address as a; print(a())"
_ASK_ALL = """
import json
from fairwarning.client import ScheduledEvents
with ScheduledEvents() as events:
    found = {"url": events.url, "name": events.instance().name}
    found["events"] = [each.id for each in events.get().events]
    print(json.dumps(found))
"""


def check_dhcp() -> list[str]:
    found = run_in_vms(ask_both, VMS, endpoints=[WIRE_SERVER])
    assert found["nobody answers"] == "None", found
    assert found["bare"] == WIRE_SERVER, found
    assert found["classic"] == {
        "url": f"http://{WIRE_SERVER}",
        "name": "classic",
        "events": [found["planned"]],
    }, found
    return [
        "option 245 of dnsmasq is read on an interface without an address, with port 68 taken",
        f"the client finds {WIRE_SERVER} without any setting, and its document there",
        "where no DHCP server answers, that is said",
    ]


def ask_both(rig: Rig) -> dict[str, object]:
    silent = _said(rig.vms["bare"], _ASK_DHCP)
    with tempfile.TemporaryDirectory() as folder:
        _start_dnsmasq(rig, Path(folder))
        with serving_endpoint({"old": {"classic": VMS["classic"]}}, f"{WIRE_SERVER}:80") as server:
            json.loads(_said(rig.vms["classic"], _ASK_ALL))
            planned = server.schedule("classic")
            return {
                "nobody answers": silent,
                "bare": rig.vms["bare"].call(_while_port_68_is_taken, rig.vms["bare"]),
                "classic": json.loads(_said(rig.vms["classic"], _ASK_ALL)),
                "planned": planned,
            }


def _while_port_68_is_taken(vm: Vm) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("0.0.0.0", 68))  # noqa: S104  (in a namespace)
        return _said(vm, _ASK_DHCP)


def _said(vm: Vm, script: str) -> str:
    done = vm.run([sys.executable, "-c", script])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _start_dnsmasq(rig: Rig, folder: Path) -> None:
    with IPRoute() as outer:
        for number in range(len(VMS)):
            index = outer.link_lookup(ifname=f"vm{number}")[0]
            outer.addr("add", index=index, address=f"10.99.{number}.1", prefixlen=24)
    command = [
        program("dnsmasq"), "--no-daemon",
        "--conf-file=/dev/null", "--port=0", "--no-ping", "--bind-interfaces",
        "--interface=vm0,vm1", f"--dhcp-leasefile={folder}/leases", f"--pid-file={folder}/pid",
        "--dhcp-range=10.99.0.100,10.99.0.110", "--dhcp-range=10.99.1.100,10.99.1.110",
        f"--dhcp-option-force=245,{WIRE_SERVER}",
    ]  # fmt: skip
    dnsmasq = rig.start(command, stderr=subprocess.PIPE)
    assert dnsmasq.stderr is not None
    said = []
    for line in dnsmasq.stderr:
        said.append(line)
        if "IP range" in line:
            return
    raise AssertionError(f"dnsmasq did not start: {''.join(said)}")
