"""Checks two networks with the same addresses, which the proxy keeps apart."""

import json
import sys
import tempfile
from pathlib import Path
from subprocess import PIPE

from tests.support.namespaces import ENDPOINT, run_in_vms
from tests.support.processes import clean_environment, serving
from tests.support.vms import Rig, Vm
from tools.network.lab import ip, name_told_to

ADDRESS = "10.0.0.10"
VMS: dict[str, list[str]] = {"red": [], "blue": [], "red-guest": [], "blue-guest": []}
FLEET = '[[vm]]\nname = "red-vm"\n[[vm]]\nname = "blue-vm"\n'
_SECRET = "s3cret"  # noqa: S105  (of a server that lives for this check)
_LIE = f"""
import urllib.request
request = urllib.request.Request(
    "http://{ENDPOINT}/metadata/instance/compute/name?api-version=2021-02-01&format=text",
    headers={{"Metadata": "true", "X-Instance-ID": "blue-vm", "X-Instance-ID-Signature": "00"}})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
print(opener.open(request).read().decode())
"""


def check_tenants() -> list[str]:
    found = run_in_vms(play, VMS, endpoints=[])
    assert found == {"red": "red-vm", "blue": "blue-vm", "lie": "red-vm"}, found
    return [
        f"two guests with the address {ADDRESS}, in two network namespaces, are told apart by one "
        "proxy outside both",
        "headers that a guest writes itself change nothing",
    ]


def play(rig: Rig) -> dict[str, str]:
    for tenant in ("red", "blue"):
        _connect(rig.vms[tenant], rig.vms[f"{tenant}-guest"])
    with tempfile.TemporaryDirectory() as folder:
        fleet, file = Path(folder, "fleet.toml"), Path(folder, "network.toml")
        fleet.write_text(FLEET)
        environment = {**clean_environment(), "FAIRWARNING_PROXY_SECRET": _SECRET}
        with serving("--proxy", "127.0.0.1", "--fleet", str(fleet), env=environment) as server:
            file.write_text(_network_file(rig, server.metadata))
            command = [sys.executable, "-m", "fairwarning", "network", "proxy", str(file)]
            proxy = rig.start(command, stdout=PIPE, env=environment)
            assert proxy.stdout is not None
            assert proxy.stdout.readline().startswith("ready"), "the proxy did not start"
            lie = rig.vms["red-guest"].run([sys.executable, "-c", _LIE])
            assert lie.returncode == 0, lie.stderr
            return {
                "red": name_told_to(rig.vms["red-guest"]),
                "blue": name_told_to(rig.vms["blue-guest"]),
                "lie": lie.stdout.strip(),
            }


def _connect(tenant: Vm, guest: Vm) -> None:
    """Connects the guest with its tenant's namespace, where the endpoint's address is."""
    ip("link", "add", "guest", "netns", str(tenant.pid), "type", "veth",
       "peer", "name", "card", "netns", str(guest.pid))  # fmt: skip
    ip("address", "add", f"{ENDPOINT}/32", "dev", "lo", inside=tenant)
    ip("link", "set", "guest", "up", inside=tenant)
    ip("route", "add", ADDRESS, "dev", "guest", inside=tenant)
    ip("address", "add", f"{ADDRESS}/32", "dev", "card", inside=guest)
    ip("link", "set", "card", "up", inside=guest)
    ip("route", "add", ENDPOINT, "dev", "card", inside=guest)


def _network_file(rig: Rig, server: str) -> str:
    lines = [f"server = {json.dumps(server)}"]
    for tenant in ("red", "blue"):
        lines += [
            "[[network]]",
            f'name = "{tenant}"',
            f'namespace = "/proc/{rig.vms[tenant].pid}/ns/net"',
            f'guests = [{{ instance = "{tenant}-vm", addresses = ["{ADDRESS}"] }}]',
        ]
    return "\n".join(lines)
