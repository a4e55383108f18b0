"""Checks the lines for dnsmasq: a real DHCP client gets its lease, its routes and option 245."""

import json
import subprocess
import tempfile
from pathlib import Path

from tests.support.namespaces import ENDPOINT, run_in_vms
from tests.support.vms import Rig
from tools.debian_packages import program
from tools.network.lab import BRIDGE, ROUTER, bridge_guests, load_rules, network_toml, printed

MACS = {"web-0": "52:54:00:00:00:20", "stranger": "52:54:00:00:00:21"}
VMS: dict[str, list[str]] = {"web-0": [], "stranger": []}
LEASE = "10.0.0.77"
_TOLD = ("ip", "hostname", "staticroutes", "msstaticroutes", "opt245")
_SCRIPT = """#!/bin/sh
if [ "$1" = bound ]; then
  for name in {names}; do eval "echo $name=\\$$name"; done > {output}
fi
"""


def check_leases() -> list[str]:
    found = run_in_vms(play, VMS, endpoints=[])
    routes = f"{ENDPOINT}/32 {ROUTER} 0.0.0.0/0 {ROUTER}"
    assert found == {
        "ip": LEASE,
        "hostname": "web-0",
        "staticroutes": routes,
        "msstaticroutes": routes,
        "opt245": "".join(f"{int(each):02x}" for each in ENDPOINT.split(".")),
    }, found
    return [
        "dnsmasq gives a guest its own address and name, the route to the endpoint, the default "
        "route and option 245, under the rules of its port"
    ]


def play(rig: Rig) -> dict[str, str]:
    bridge_guests(rig, MACS)
    guest = {"instance": "web-0", "interface": "vm0", "mac": MACS["web-0"], "addresses": [LEASE]}
    text = network_toml([guest], bridge=BRIDGE, router=ROUTER)
    load_rules(text)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _start_dnsmasq(rig, folder, printed("dnsmasq", text))
        script, output = folder / "script", folder / "told"
        script.write_text(_SCRIPT.format(names=" ".join(_TOLD), output=output))
        script.chmod(0o755)
        asked = [word for option in ("245", "121", "249") for word in ("-O", option)]
        command = [program("udhcpc"), "-f", "-q", "-i", "eth0", "-s", str(script), *asked]
        done = rig.vms["web-0"].run(command)
        assert done.returncode == 0, done.stderr
        lines = output.read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


def _start_dnsmasq(rig: Rig, folder: Path, lines: str) -> None:
    config = folder / "dnsmasq.conf"
    own = f"port=0\nno-ping\ninterface={BRIDGE}\nbind-interfaces\ndhcp-range=10.0.0.0,static\n"
    config.write_text(own + f"dhcp-leasefile={folder}/leases\npid-file={folder}/pid\n" + lines)
    dnsmasq = rig.start(
        [program("dnsmasq"), "--no-daemon", f"--conf-file={config}", "--user="],
        stderr=subprocess.PIPE,
    )
    assert dnsmasq.stderr is not None
    said = []
    for line in dnsmasq.stderr:
        said.append(line)
        if "static leases" in line or "IP range" in line:
            return
    raise AssertionError(f"dnsmasq did not start: {json.dumps(said)}")
