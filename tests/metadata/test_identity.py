"""Who is asking, and that nobody can be somebody else."""

from collections.abc import AsyncIterator

import pytest

from fairwarning.core.commands import AddInstances, Approve, Operate
from fairwarning.core.model import Instance, InstanceName, OperationKind, instance_actor
from fairwarning.core.resources import AvailabilitySet, Member
from fairwarning.metadata import server
from fairwarning.metadata.identity import Callers, canonical, is_loopback, sign
from fairwarning.metadata.requests import Kind, Request
from fairwarning.metadata.responses import Response
from fairwarning.metadata.settings import EndpointRules
from tests.metadata.rig import ME, PATH, Client, Rig, request

NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"


async def who(rig: Rig, source: str, path: str = NAME, **headers: str) -> tuple[int, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await rig.ask(path, source=source, headers={"Metadata": "true", **named})
    return response.status, response.body.decode()


async def test_the_source_address_decides(rig: Rig) -> None:
    assert await who(rig, "127.0.1.10") == (200, "web-0")
    assert await who(rig, "127.0.2.11") == (200, "workers_1")


async def test_two_scopes_see_two_documents(rig: Rig) -> None:
    await rig.schedule("web-0")
    assert len((await rig.ask(source="127.0.1.11")).events) == 1
    assert (await rig.ask(source="127.0.2.10")).events == []


async def test_a_strange_address_gets_no_document(rig: Rig) -> None:
    response = await rig.ask(source="127.0.9.9")
    assert response.status == 404
    assert "127.0.9.9 belongs to no instance" in str(response.json()["error"])


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Instance-ID": "workers_0"},
        {"X-Instance-ID": "workers_0", "X-Instance-ID-Signature": sign("", "workers_0")},
        {"X-Real-IP": "127.0.2.10"},
        {"Forwarded": "for=127.0.2.10"},
        {"Host": "127.0.2.10"},
        {"X-Vm": "workers_0"},
    ],
)
async def test_no_header_makes_a_client_somebody_else(rig: Rig, headers: dict[str, str]) -> None:
    response = await rig.ask(NAME, headers={"Metadata": "true", **headers})
    assert response.body == b"web-0"


async def test_on_loopback_the_base_path_names_the_vm(rig: Rig) -> None:
    assert await who(rig, "127.0.0.1", f"/vm/workers_2{NAME}") == (200, "workers_2")
    status, text = await who(rig, "127.0.0.1", f"/vm/nobody{NAME}")
    assert status == 404
    assert "web-0" in text
    status, text = await who(rig, "127.0.0.1")
    assert status == 404
    assert "/vm/NAME" in text


async def test_one_of_two_instances_of_a_name_is_named_with_its_set(rig: Rig) -> None:
    twin = AvailabilitySet(name="twin", members=(Member(name="web-0", addresses=("127.0.3.10",)),))
    await rig.engine.declare([twin], by=ME)
    status, text = await who(rig, "127.0.0.1", f"/vm/web-0{NAME}")
    assert status == 404
    assert "/vm/twin/web-0 or /vm/web/web-0" in text
    for base in ("twin", "availability-set/twin"):
        assert await who(rig, "127.0.0.1", f"/vm/{base}/web-0{NAME}") == (200, "web-0")
    found = await rig.ask(f"/vm/web/web-0{PATH}", source="127.0.0.1")
    assert found.status == 200
    assert (await who(rig, "127.0.0.1", f"/vm/nowhere/web-0{NAME}"))[0] == 404


async def test_ipv6(unused_tcp_port: int) -> None:
    rig = Rig()
    await rig.start("::1")
    assert await who(rig, "::1") == (200, "six")
    assert await who(rig, "::1", f"/vm/web-0{NAME}") == (200, "web-0")
    await rig.stop()


def test_addresses_have_one_form() -> None:
    assert canonical("::ffff:10.0.0.5") == "10.0.0.5"
    assert canonical("FD00::1") == "fd00::1"


def test_the_same_address_on_another_link_is_another() -> None:
    assert canonical("FE80::1", 2) == "fe80::1%2"


async def test_a_trusted_proxy_names_the_instance_under_its_signature() -> None:
    rules = EndpointRules(proxy_secret="s3cret", proxy_addresses=frozenset({"127.0.7.7"}))
    rig = Rig(rules)
    await rig.start()
    good = {"X_Instance_ID": "workers_0", "X_Instance_ID_Signature": sign("s3cret", "workers_0")}
    assert await who(rig, "127.0.7.7", **good) == (200, "workers_0")
    assert await who(rig, "127.0.7.7", X_Forwarded_For="10.0.0.1", **good) == (200, "workers_0")
    forged = {**good, "X_Instance_ID": "web-0"}
    assert (await who(rig, "127.0.7.7", **forged))[0] == 404
    assert (await who(rig, "127.0.7.7", X_Instance_ID="web-0"))[0] == 404
    assert await who(rig, "127.0.1.10", **good) == (200, "web-0")
    assert (await who(rig, "127.0.1.10", X_Forwarded_For="10.0.0.1", **good))[0] == 400
    await rig.stop()


@pytest.fixture
async def behind_proxy() -> AsyncIterator[Rig]:
    rules = EndpointRules(proxy_secret="s3cret", proxy_addresses=frozenset({"127.0.7.7"}))
    rig = Rig(rules)
    await rig.start()
    yield rig
    await rig.stop()


async def test_a_request_that_was_forwarded_is_refused_on_a_connection_that_is_known(
    behind_proxy: Rig,
) -> None:
    """Who asked on it before was the instance itself, and says nothing about who asks now."""
    client = await behind_proxy.connect()
    for path in (NAME, PATH):
        await client.send(request(path))
        assert (await client.receive()).status == 200
        await client.send(
            request(path, headers={"Metadata": "true", "X-Forwarded-For": "10.0.0.1"})
        )
        assert (await client.receive()).status == 400


async def test_behind_a_proxy_nothing_but_its_signature_says_who_asks() -> None:
    """What else a request says may be the word of the proxy's client."""
    proxy = "127.0.1.11"
    rules = EndpointRules(proxy_secret="s3cret", proxy_addresses=frozenset({proxy}))
    rig = Rig(rules)
    await rig.start()
    signed = f"X-Instance-ID: workers_0\r\nX-Instance-ID-Signature: {sign('s3cret', 'workers_0')}"
    for path in (NAME, f"/vm/web-0{NAME}"):
        for headers in (
            "",
            "X-Instance-ID: x\r\n",
            f"X-Instance-ID: x\r\n{signed}\r\n",
            f"{signed}\r\nX-Instance-ID: x\r\n",
        ):
            client = await rig.connect(proxy)
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nMetadata: true\r\n{headers}\r\n"
            await client.send(head.encode())
            assert (await client.receive()).status == 404
    lone = {"Metadata": "true", "Connection": "close"}
    for source, status in ((proxy, 404), ("127.0.1.12", 200), (proxy, 404)):
        # Known by its bytes by now, but not for everybody.
        assert (await rig.ask(PATH, source=source, headers=lone)).status == status
    status, text = await who(
        rig, proxy, X_Instance_ID="nobody", X_Instance_ID_Signature=sign("s3cret", "nobody")
    )
    assert status == 404
    assert "web-0" not in text, "an instance hears nothing of the others"
    await rig.stop()


async def poll(client: Client) -> int:
    await client.send(request(PATH))
    return (await client.receive()).status


async def test_a_deleted_instance_is_a_stranger_on_its_open_connection(rig: Rig) -> None:
    client = await rig.connect("127.0.2.10")
    assert await poll(client) == 200
    delete = Operate(
        event_id=rig.engine.new_id(),
        kind=OperationKind.DELETE,
        instance=InstanceName("workers_0"),
    )
    await rig.submit(rig.workers, delete)
    by = instance_actor(InstanceName("workers_0"))
    await rig.engine.submit(rig.workers.id, Approve(event_id=delete.event_id, by=by), by=ME)
    await rig.clock.advance(60_000)
    assert await poll(client) == 404


async def test_an_address_that_passes_on_takes_effect_at_once(rig: Rig) -> None:
    client = await rig.connect("127.0.1.99")
    assert await poll(client) == 404
    new = Instance(name=InstanceName("web-9"), addresses=("127.0.1.99",))
    await rig.submit(rig.web, AddInstances(instances=(new,)))
    assert await poll(client) == 200
    assert await who(rig, "127.0.1.99") == (200, "web-9")


OPEN_HOSTS = [
    "169.254.169.254", "169.254.169.254:80", "127.0.0.1:8169", "localhost:8169", "LOCALHOST", "",
    "[::1]:8169", "10.0.0.1", "127.0.2.10",
]  # fmt: skip
FOREIGN: list[dict[str, str]] = [
    {"Host": "evil.example"},
    {"Host": "evil.example:8169"},
    {"Host": "localhost.evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "localhost@evil.example"},
    {"Host": "[::1"},
    {"Host": "127.0.0.1", "Origin": "http://evil.example"},
    {"Host": "127.0.0.1:8169", "Origin": "http://127.0.0.1:8170"},
    {"Host": "127.0.0.1", "Origin": "null"},
    {"Host": "127.0.0.1", "Sec-Fetch-Site": "cross-site"},
    {"Host": "127.0.0.1", "Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("host", OPEN_HOSTS)
async def test_on_loopback_every_address_is_a_host(rig: Rig, host: str) -> None:
    assert await who(rig, "127.0.0.1", f"/vm/web-0{NAME}", Host=host) == (200, "web-0")
    assert await who(rig, "127.0.1.10", Host=host, Origin=f"http://{host}") == (200, "web-0")
    assert await who(rig, "127.0.1.10", f"http://{host or 'localhost'}{NAME}") == (200, "web-0")


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_on_loopback_no_web_page_reads_or_approves(rig: Rig, headers: dict[str, str]) -> None:
    id = await rig.schedule()
    body = b'{"StartRequests":[{"EventId":"%s"}]}' % id.encode()
    old = "/metadata/scheduledevents?api-version=2017-03-01"
    for base, source in (("/vm/web-0", "127.0.0.1"), ("", "127.0.1.10")):
        named = {"Metadata": "true", **headers}
        for path in (NAME, PATH, "/metadata/versions"):
            answer = await rig.ask(base + path, headers=named, source=source)
            assert answer.status == 403
            assert b"web" not in answer.body.replace(b"web page", b"")
        approval = await rig.ask(
            base + old, method="POST", headers=headers, body=body, source=source
        )
        assert approval.status == 403
    assert (await rig.ask()).events[0]["EventStatus"] == "Scheduled"


async def test_a_foreign_target_is_a_foreign_host(rig: Rig) -> None:
    assert (await who(rig, "127.0.1.10", f"http://evil.example{NAME}"))[0] == 403


@pytest.mark.parametrize("more", [{}, {"Connection": "close"}])
async def test_on_loopback_a_foreign_poll_stays_foreign_once_it_is_known(
    rig: Rig, more: dict[str, str]
) -> None:
    client = await rig.connect()
    assert await poll(client) == 200
    foreign = request(PATH, headers={"Host": "evil.example", "Metadata": "true", **more})
    for _ in range(3):
        if more:
            client = await rig.connect()
        await client.send(foreign)
        assert (await client.receive()).status == 403


async def test_elsewhere_any_name_may_be_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "is_loopback", lambda host: False)
    rig = Rig()
    await rig.start()
    for more in ({}, {"Connection": "close"}):
        headers = {"Host": "metadata.example", "Metadata": "true", **more}
        for _ in range(3):
            assert (await rig.ask(headers=headers)).status == 200
    await rig.stop()


async def test_a_proxy_on_loopback_says_who_asks_whatever_the_host() -> None:
    rules = EndpointRules(proxy_secret="s3cret", proxy_addresses=frozenset({"127.0.7.7"}))
    rig = Rig(rules)
    await rig.start()
    signed = {"X_Instance_ID": "workers_0", "X_Instance_ID_Signature": sign("s3cret", "workers_0")}
    assert await who(rig, "127.0.7.7", Host="metadata.example", **signed) == (200, "workers_0")
    await rig.stop()


def test_only_an_address_is_on_loopback() -> None:
    assert [host for host in ("::1", "127.9.9.9", "::ffff:127.0.0.1", "localhost", "10.0.0.1", "")
            if is_loopback(host)] == ["::1", "127.9.9.9"]  # fmt: skip


async def test_a_link_local_address_is_told_to_ask_from_another(rig: Rig) -> None:
    callers = Callers(rig.engine.views, rig.rules)
    asked = Request(kind=Kind.VERSIONS)
    answer = callers.find(asked, "fe80::1%2", on_loopback=False)
    assert isinstance(answer, Response)
    assert b"fe80::1%2 belongs to no instance; a link-local one never does" in answer.body
    answer = callers.find(asked, "10.0.0.1", on_loopback=False)
    assert isinstance(answer, Response)
    assert answer.body.endswith(b'10.0.0.1 belongs to no instance"}')
