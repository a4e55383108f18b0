"""Checks guests on routed links: what comes in under another's address is dropped."""

import socket

from tests.support.endpoint_process import serving_endpoint
from tests.support.namespaces import ENDPOINT, run_in_vms
from tests.support.patience import HANG_S
from tests.support.vms import Rig
from tools.network.lab import ip, load_rules, name_told_to, network_toml

VMS = {"victim": ["10.1.0.10", "fd01::10"], "attacker": ["10.1.0.11", "fd01::11"]}
ENDPOINT_6 = "fd01::254"
_PORT = 40_000


def check_routed() -> list[str]:
    found = run_in_vms(play, VMS, endpoints=[ENDPOINT, ENDPOINT_6])
    every = sorted(address for addresses in VMS.values() for address in addresses)
    assert sorted(found["before"]) == every, found
    assert sorted(found["after"]) == sorted(VMS["attacker"]), found
    assert found["names"] == {name: name for name in VMS}, found
    return [
        "without the rules a guest reaches the endpoint under another's IPv4 and IPv6 address, "
        "with them only under its own",
        "the endpoint tells each guest its own name, under the rules",
    ]


def play(rig: Rig) -> dict[str, object]:
    for name in ("all", "vm0", "vm1"):
        # The rules are to do it alone, without the kernel's own check of return paths.
        with open(f"/proc/sys/net/ipv4/conf/{name}/rp_filter", "w") as file:
            file.write("0")
    attacker = rig.vms["attacker"]
    for address, bits in zip(VMS["victim"], (32, 128), strict=True):
        more = ["nodad"] if bits == 128 else []
        ip("address", "add", f"{address}/{bits}", "dev", "eth0", *more, inside=attacker)
    found: dict[str, object] = {"before": _sources_heard(rig)}
    guests = [
        {"instance": name, "interface": f"vm{n}", "addresses": addresses}
        for n, (name, addresses) in enumerate(VMS.items())
    ]
    load_rules(network_toml(guests))
    found["after"] = _sources_heard(rig)
    with serving_endpoint({"lab": {n: a[:1] for n, a in VMS.items()}}, f"{ENDPOINT}:80"):
        found["names"] = {name: name_told_to(vm) for name, vm in rig.vms.items()}
    return found


def _sources_heard(rig: Rig) -> list[str]:
    """Returns the source addresses under which the attacker reaches the endpoint's host."""
    heard: set[str] = set()
    for family, endpoint, n in (
        (socket.AF_INET, ENDPOINT, 0),
        (socket.AF_INET6, ENDPOINT_6, 1),
    ):
        with socket.socket(family, socket.SOCK_DGRAM) as host:
            host.bind((endpoint, _PORT))
            host.settimeout(HANG_S)
            own = VMS["attacker"][n]
            rig.vms["attacker"].call(_send, family, endpoint, [VMS["victim"][n], own])
            source = ""
            while source != own:  # It is sent last, and a link keeps the order.
                source = host.recvfrom(100)[1][0]
                heard.add(source)
    return sorted(heard)


def _send(family: socket.AddressFamily, endpoint: str, sources: list[str]) -> None:
    for source in sources:
        with socket.socket(family, socket.SOCK_DGRAM) as guest:
            guest.bind((source, 0))
            guest.sendto(b"hello", (endpoint, _PORT))
