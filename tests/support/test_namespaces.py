"""The rig itself: who asks is told by the source address, and nobody can borrow another's."""

import http.server
import os
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.namespaces import ENDPOINT, run_in_vms
from tests.support.patience import HANG_S
from tests.support.vms import Rig

VMS = {"web-0": "10.77.0.11", "db": "10.77.0.12"}
ENDPOINT_6 = "fd00:77::254"
VMS_6 = {"web-0": ["10.77.0.11", "fd00:77::11"], "db": "10.77.0.12"}
_ASK = "import sys, urllib.request as u; print(end=u.urlopen(sys.argv[1]).read().decode())"


class _EchoSource(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = self.client_address[0].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


@contextmanager
def _serving(
    kind: type[http.server.ThreadingHTTPServer] = http.server.ThreadingHTTPServer,
    address: str = ENDPOINT,
) -> Iterator[None]:
    with kind((address, 80), _EchoSource) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield
        server.shutdown()


def _get(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=HANG_S) as answer:
        body: bytes = answer.read()
    return body.decode()


def two_vms_ask(rig: Rig) -> dict[str, dict[str, str]]:
    url = f"http://{ENDPOINT}/"
    with _serving():
        return {
            name: {
                "by thread": vm.call(_get, url),
                "by process": vm.run([sys.executable, "-c", _ASK, url]).stdout,
                "hostname": vm.run(["uname", "--nodename"]).stdout.strip(),
            }
            for name, vm in rig.vms.items()
        }


def one_vm_asks_over_ipv6(rig: Rig) -> str:
    with _serving(_Server6, ENDPOINT_6):
        return rig.vms["web-0"].call(_get, f"http://[{ENDPOINT_6}]/")


def one_vm_lies(rig: Rig) -> str:
    liar, victim = rig.vms["db"], rig.vms["web-0"]

    def borrow() -> str:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_IP, 15, 1)  # IP_FREEBIND: an address that is not ours
            client.settimeout(1)
            client.bind((victim.addresses[0], 0))
            try:
                client.connect((ENDPOINT, 80))
            except OSError as refusal:
                return str(refusal)
            return "connected"

    with _serving():
        return liar.call(borrow)


def stray(rig: Rig) -> int:
    return rig.start(["sleep", "1000"]).pid


def fail(rig: Rig) -> None:
    raise ValueError("as asked")


def hang(rig: Rig) -> None:
    threading.Event().wait()


def test_each_vm_is_seen_under_its_own_address() -> None:
    assert run_in_vms(two_vms_ask, VMS) == {
        "web-0": {"by thread": "10.77.0.11", "by process": "10.77.0.11", "hostname": "web-0"},
        "db": {"by thread": "10.77.0.12", "by process": "10.77.0.12", "hostname": "db"},
    }


def test_a_vm_may_have_an_ipv6_address() -> None:
    endpoints = [ENDPOINT, ENDPOINT_6]
    assert run_in_vms(one_vm_asks_over_ipv6, VMS_6, endpoints=endpoints) == "fd00:77::11"


def test_no_vm_connects_from_an_address_that_is_not_its_own() -> None:
    assert run_in_vms(one_vm_lies, VMS) != "connected"


def test_a_process_of_the_story_ends_with_it() -> None:
    pid = run_in_vms(stray, {})
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_story_that_fails_or_hangs_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="failed with code 1"):
        run_in_vms(fail, {})
    with pytest.raises(AssertionError, match="took longer than 1 s"):
        run_in_vms(hang, {}, timeout_s=1)
