"""The real address and port, asked from machines with networks of their own.

The clients are ours, in the shapes of others: curl (its bytes), urllib, and an HttpClient
that keeps its connection and expects 100-continue.
"""

import json
import socket
import sys
import urllib.error
import urllib.request
from typing import Any

from pyroute2 import IPRoute  # type: ignore[import-untyped]

from tests.support.endpoint_process import serving_endpoint
from tests.support.namespaces import ENDPOINT, run_in_vms
from tests.support.patience import HANG_S
from tests.support.vms import Rig

VMS = {"web-0": "10.77.0.11", "web-1": "10.77.0.12", "db": "10.77.0.13", "stray": "10.77.0.14"}
FLEET = {
    "web": {"web-0": [VMS["web-0"]], "web-1": [VMS["web-1"]]},
    "data": {"db": [VMS["db"]]},
}
ADDRESS = f"{ENDPOINT}:80"
PATH = "/metadata/scheduledevents?api-version="
ENDPOINT_6 = "fd00:77::254"


def by_curl(path: str, body: str | None = None) -> tuple[int, str]:
    """The bytes that curl 7.88 sends, with -H Metadata:true and perhaps -d BODY."""
    lines = [
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
        f"Host: {ENDPOINT}",
        "User-Agent: curl/7.88.1",
        "Accept: */*",
        "Metadata:true",
    ]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
        lines.append("Content-Type: application/x-www-form-urlencoded")
    with socket.create_connection((ENDPOINT, 80), timeout=HANG_S) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + (body or "")).encode())
        return _read(connection)


def by_urllib(path: str, body: str | None = None) -> tuple[int, str]:
    """As the Python samples do: no Content-Type of their own, and Connection: close."""
    request = urllib.request.Request(
        f"http://{ENDPOINT}{path}",
        data=None if body is None else body.encode(),
        headers={"Metadata": "true"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=HANG_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def by_http_client(path: str, event_id: str) -> list[int]:
    """.NET's way: poll, approve and poll on one connection, asking leave to send the body."""
    body = json.dumps({"StartRequests": [{"EventId": event_id}]})
    with socket.create_connection((ENDPOINT, 80), timeout=HANG_S) as connection:
        get = f"GET {path} HTTP/1.1\r\nHost: {ENDPOINT}\r\nmetadata: true\r\n\r\n".encode()
        connection.sendall(get)
        seen = [_read(connection)[0]]
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: {ENDPOINT}\r\nmetadata: true\r\n"
            f"Content-Type: application/json; charset=utf-8\r\nExpect: 100-continue\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
        )
        seen.append(_read(connection)[0])
        connection.sendall(body.encode())
        seen.append(_read(connection)[0])
        connection.sendall(get)
        return [*seen, _read(connection)[0]]


def _read(connection: socket.socket) -> tuple[int, str]:
    said = b""
    while b"\r\n\r\n" not in said:
        said += connection.recv(1)
    head = said.decode().lower()
    length = int(head.split("content-length: ")[1].split("\r\n")[0]) if "content-len" in head else 0
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return int(head.split()[1]), body.decode()


def each_sees_its_own(rig: Rig) -> dict[str, Any]:
    with serving_endpoint(FLEET, ADDRESS) as server:
        event_id = server.schedule("web-0")
        seen: dict[str, Any] = {}
        for name, vm in rig.vms.items():
            for client in (by_curl, by_urllib):
                status, body = vm.call(client, PATH + "2020-07-01")
                events = json.loads(body).get("Events") if status == 200 else None
                seen[f"{name} {client.__name__}"] = [
                    status,
                    [each["Resources"] for each in events] if events is not None else None,
                ]
        seen["id"] = event_id
        return seen


def test_each_machine_sees_its_own_scope_and_a_stray_one_sees_nothing() -> None:
    seen = run_in_vms(each_sees_its_own, VMS)
    for client in ("by_curl", "by_urllib"):
        assert seen[f"web-0 {client}"] == [200, [["web-0"]]]
        assert seen[f"web-1 {client}"] == [200, [["web-0"]]]
        assert seen[f"db {client}"] == [200, []]
        assert seen[f"stray {client}"] == [404, None]


def each_approves(rig: Rig) -> dict[str, Any]:
    told: dict[str, Any] = {}
    web = rig.vms["web-1"]
    for client in (by_curl, by_urllib):
        with serving_endpoint(FLEET, ADDRESS) as server:
            event_id = server.schedule("web-0")
            body = json.dumps({"StartRequests": [{"EventId": event_id}]})
            foreign = rig.vms["db"].call(client, PATH + "2020-07-01", body)
            own = web.call(client, PATH + "2017-03-01", body)
            told[client.__name__] = [foreign[0], own, server.wait_until_started(event_id)]
    with serving_endpoint(FLEET, ADDRESS) as server:
        event_id = server.schedule("web-0")
        told["by_http_client"] = web.call(by_http_client, PATH + "2019-08-01", event_id)
        told["phase"] = server.wait_until_started(event_id)
    return told


def test_each_shape_of_client_approves() -> None:
    told = run_in_vms(each_approves, VMS)
    assert told["by_curl"] == [400, [200, ""], "started"]
    assert told["by_urllib"] == [400, [200, ""], "started"]
    assert told["by_http_client"] == [200, 100, 200, 200]
    assert told["phase"] == "started"


def no_base_path(rig: Rig) -> list[Any]:
    with serving_endpoint(FLEET, ADDRESS):
        return list(rig.vms["db"].call(by_curl, "/vm/web-0" + PATH + "2020-07-01"))


def test_a_machine_cannot_name_itself_by_its_path() -> None:
    status, body = run_in_vms(no_base_path, VMS)
    assert status == 404
    assert "loopback" in body


def over_ipv6(rig: Rig) -> list[Any]:
    fleet = {"web": {"web-0": ["fd00:77::11"]}}

    def ask() -> tuple[int, str]:
        with socket.create_connection((ENDPOINT_6, 80), timeout=HANG_S) as connection:
            head = f"GET {PATH}2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n\r\n"
            connection.sendall(head.encode())
            return _read(connection)

    with serving_endpoint(fleet, f"[{ENDPOINT_6}]:80"):
        return list(rig.vms["web-0"].call(ask))


def test_ipv6_machines_are_known_by_their_address_too() -> None:
    status, body = run_in_vms(
        over_ipv6, {"web-0": ["10.77.0.11", "fd00:77::11"]}, endpoints=[ENDPOINT, ENDPOINT_6]
    )
    assert (status, json.loads(body)["Events"]) == (200, [])


LINK_LOCAL, ENDPOINT_LINK_LOCAL = "fe80::77:11", "fe80::77:254"
OLDER_VERSION = (
    sys.executable,
    "-c",
    "from fairwarning.core import roster; roster.refuse_address = lambda text: None; "
    "from tests.support.endpoint_program import main; main()",
)
"""A server whose fleet was declared when link-local addresses were not refused yet."""


def on_two_links(rig: Rig) -> list[Any]:
    def ask() -> tuple[int, str]:
        with IPRoute() as ip:
            index = ip.link_lookup(ifname="eth0")[0]
            no_duplicate_detection = 0x02
            ip.addr("add", index=index, address=LINK_LOCAL, prefixlen=64,
                    flags=no_duplicate_detection)  # fmt: skip
        with socket.socket(socket.AF_INET6) as connection:
            connection.settimeout(HANG_S)
            connection.bind((LINK_LOCAL, 0, 0, index))
            connection.connect((ENDPOINT_LINK_LOCAL, 80, 0, index))
            head = f"GET {PATH}2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n\r\n"
            connection.sendall(head.encode())
            return _read(connection)

    with serving_endpoint({"web": {"web-0": [LINK_LOCAL]}}, "[::]:80", OLDER_VERSION):
        return [vm.call(ask) for vm in rig.vms.values()]


def test_a_link_local_address_is_nobody_on_any_link() -> None:
    """Two machines on two links have the same one, and only one of them can be web-0."""
    vms = {"web-0": "10.77.0.11", "stray": "10.77.0.14"}
    for status, body in run_in_vms(on_two_links, vms, endpoints=[ENDPOINT_LINK_LOCAL]):
        assert status == 404
        assert f"Address {LINK_LOCAL}%" in body
