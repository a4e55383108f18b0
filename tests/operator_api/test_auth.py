"""Who may do what, and that secrets stay secret."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from fairwarning.node import Node, NodeSettings, TlsNeeded
from fairwarning.operator_api import auth
from fairwarning.operator_api.auth import USE_NOTED_MS, Role, Tokens
from fairwarning.operator_api.server import Tls
from tests.operator_api.rig import ME, Block, Rig, running
from tests.support.patience import HANG_S


async def token(rig: Rig, role: str, **more: str) -> str:
    made = await rig.post("/tokens", {"name": f"a-{role}", "role": role, **more}, 201)
    secret = made["secret"]
    assert isinstance(secret, str)
    return secret


def make_certificate(folder: Path) -> tuple[Path, Path, Path]:
    """A certificate, its key, and the authority that signed it."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key, trusted = folder / "cert.pem", folder / "key.pem", folder / "ca.pem"
    certificate.write_bytes(issued.cert_chain_pems[0].bytes())
    key.write_bytes(issued.private_key_pem.bytes())
    trusted.write_bytes(authority.cert_pem.bytes())
    return certificate, key, trusted


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_each_role_may_do_what_it_is_for_and_no_more(rig: Rig) -> None:
    secrets = {role: await token(rig, role) for role in ("viewer", "approver", "operator", "admin")}
    event = await rig.schedule("db", duration="1h")
    asked: list[tuple[str, str, Any, str]] = [
        ("GET", "/events", None, "viewer"),
        ("POST", f"/events/{event['id']}/approve", None, "approver"),
        ("POST", "/events", {"type": "Freeze", "targets": ["web-0"]}, "operator"),
        ("GET", "/tokens", None, "admin"),
    ]
    order = list(secrets)
    for method, path, body, needed in asked:
        for role, secret in secrets.items():
            answer = await rig.api.request(method, path, json=body, headers=bearer(secret))
            if order.index(role) < order.index(needed):
                assert Rig.check(answer, 403)["code"] == "role-too-low", (path, role)
            else:
                assert answer.status_code != 403, (path, role)


async def test_a_change_names_who_made_it(rig: Rig) -> None:
    secret = await token(rig, "operator")
    body = {"type": "Reboot", "targets": ["db"]}
    await rig.api.post("/events", json=body, headers=bearer(secret))
    (entry,) = [
        each for each in (await rig.get("/history"))["entries"] if each["kind"] == "Scheduled"
    ]
    assert entry["by"] == "operator:a-operator"


async def test_a_wrong_an_expired_and_a_revoked_token_are_all_refused(rig: Rig) -> None:
    secret = await token(rig, "viewer", expires="1h")
    wrong = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for given in (wrong, "nonsense", "fw_0123456789ab_" + "x" * 43):
        answer = await rig.api.get("/events", headers=bearer(given))
        assert Rig.check(answer, 401)["code"] == "token-needed"
        assert given not in answer.text
    assert (await rig.api.get("/me", headers=bearer(secret))).json()["role"] == "viewer"
    await rig.clock.advance(3_600_000)
    assert (await rig.api.get("/me", headers=bearer(secret))).status_code == 401
    other = await token(rig, "approver")
    (shown,) = [each for each in (await rig.get("/tokens"))["tokens"] if each["expires"] is None]
    await rig.delete(f"/tokens/{shown['id']}")
    assert (await rig.api.get("/me", headers=bearer(other))).status_code == 401


async def test_only_a_hash_of_a_token_is_kept_and_its_last_use(rig: Rig) -> None:
    secret = await token(rig, "viewer")
    await rig.api.get("/me", headers=bearer(secret))
    (record,) = await rig.node.store.records("token", limit=10)
    assert secret.split("_", 2)[2] not in record.body
    (shown,) = (await rig.get("/tokens"))["tokens"]
    assert shown["lastUsed"] is not None
    assert "secret" not in shown
    assert "hash" not in shown


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "10.0.0.1"},
    {"Host": "192.168.0.1:8170"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
])  # fmt: skip
async def test_another_site_cannot_use_a_browser_on_this_machine(
    rig: Rig, headers: dict[str, str]
) -> None:
    for method, path in (("GET", "/events"), ("POST", "/events"), ("GET", "/stream")):
        answer = await rig.api.request(method, path, headers=headers)
        assert Rig.check(answer, 403)["code"] in ("foreign-host", "foreign-origin")


async def test_our_own_pages_may(rig: Rig) -> None:
    origin = rig.node.control_url
    answer = await rig.api.get(
        "/events", headers={"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    )
    assert answer.status_code == 200
    other_scheme = origin.replace("http://", "https://")
    answer = await rig.api.get("/events", headers={"Origin": other_scheme})
    assert Rig.check(answer, 403)["code"] == "foreign-origin"


def test_elsewhere_than_on_loopback_it_will_not_start_without_tls() -> None:
    with pytest.raises(TlsNeeded, match="--tls-certificate"):
        Node(NodeSettings(store_url="memory:", control=("0.0.0.0", 0)))


async def test_elsewhere_than_on_loopback_it_wants_tls_and_a_token(tmp_path: Path) -> None:
    certificate, key, trusted = make_certificate(tmp_path)

    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        context = ssl.create_default_context(cafile=str(trusted))
        async with httpx.AsyncClient(verify=context, base_url=url, timeout=HANG_S) as api:
            for path in ("/api/v1/events", "/metrics", "/api/v1/stream"):
                assert (await api.get(path)).status_code == 401
            assert (await api.get("/healthz")).status_code == 200
            auth = Tokens(rig.node.store, rig.node.clock)
            _, secret = await auth.create("me", Role.VIEWER, None, by=ME, why="")
            answer = await api.get("/api/v1/me", headers=bearer(secret))
            assert answer.json() == {"name": "me", "role": "viewer"}


async def test_only_an_admin_says_what_a_driver_runs(rig: Rig) -> None:
    secret = await token(rig, "operator")
    fleet = {"vm": [{"name": "mail", "driver": {"type": "command", "run": "/bin/true"}}]}
    answer = await rig.api.post("/fleet", json=fleet, headers=bearer(secret))
    assert Rig.check(answer, 403)["code"] == "driver-needs-admin"
    await rig.post("/fleet", fleet)
    tagged = {"vm": [{**fleet["vm"][0], "tags": {"a": "b"}}]}
    answer = await rig.api.post("/fleet", json=tagged, headers=bearer(secret))
    assert answer.status_code == 200


async def test_only_an_admin_sets_changes_or_takes_away_hooks(rig: Rig) -> None:
    as_operator = bearer(await token(rig, "operator"))
    hooks = {"before": [{"run": ["/bin/true"]}]}
    mail: dict[str, object] = {"name": "mail", "hooks": hooks}

    async def refused(vm: dict[str, object]) -> None:
        answer = await rig.api.post("/fleet", json={"vm": [vm]}, headers=as_operator)
        assert Rig.check(answer, 403)["code"] == "hooks-need-admin"

    await refused(mail)
    await rig.post("/fleet", {"vm": [mail]})
    await refused({"name": "mail", "hooks": {}})
    await refused({"name": "mail", "hooks": {"before": [{"run": ["/bin/false"]}]}})
    other = {"name": "mail", "handle": "web-0"}
    answer = await rig.api.post("/fleet", json={"vm": [other]}, headers=as_operator)
    assert Rig.check(answer, 403)["code"] == "handle-needs-admin"
    for same in ({"name": "mail", "tags": {"a": "b"}}, {**mail, "tags": {"a": "c"}}):
        answer = await rig.api.post("/fleet", json={"vm": [same]}, headers=as_operator)
        assert answer.status_code == 200
    scopes = (await rig.get("/fleet"))["scopes"]
    (kept,) = [each["hooks"] for each in scopes if each["name"] == "mail"]
    assert kept == {
        "before": [
            {
                "name": "true",
                "program": "/bin/true",
                "url": None,
                "timeout": "PT30S",
                "retries": 0,
                "pause": "PT5S",
                "onFailure": "fail",
            }
        ],
        "after": [],
    }


async def test_what_a_hook_must_know_is_in_no_answer(rig: Rig) -> None:
    for number in range(2):
        url = f"https://user:PW{number}@host/K3Y"
        hooks = {"before": [{"run": ["alarm", "K3Y"]}], "after": [{"url": url}]}
        await rig.post("/fleet", {"vm": [{"name": "mail", "hooks": hooks}]})
    shown = str(await rig.get("/history")) + str(await rig.get("/fleet"))
    assert "K3Y" not in shown
    assert "PW" not in shown


async def test_what_a_driver_must_know_is_in_no_answer(rig: Rig) -> None:
    for url in ("https://user:PW1@host/K3Y", "https://user:PW2@host/K3Y"):
        driver = {"type": "webhook", "url": url}
        await rig.post("/fleet", {"vm": [{"name": "mail", "driver": driver}]})
    shown = str(await rig.get("/history")) + str(await rig.get("/fleet"))
    assert "K3Y" not in shown
    assert "PW" not in shown


async def test_names_of_tokens_are_unique_and_some_are_taken(rig: Rig) -> None:
    await rig.post("/tokens", {"name": "ci", "role": "viewer"}, 201)
    for name in ("ci", "local", "starter"):
        problem = await rig.post("/tokens", {"name": name, "role": "viewer"}, 409)
        assert problem["code"] == "name-taken"


async def test_there_is_a_limit_to_tokens(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "TOKENS_MAX", 2)
    for name in ("a", "b"):
        made = await rig.post("/tokens", {"name": name, "role": "viewer"}, 201)
    problem = await rig.post("/tokens", {"name": "c", "role": "viewer"}, 409)
    assert problem["code"] == "too-many-tokens"
    await rig.delete(f"/tokens/{made['id']}")
    await rig.post("/tokens", {"name": "c", "role": "viewer"}, 201)


async def test_the_last_use_of_a_token_is_noted_to_the_minute(rig: Rig) -> None:
    secret = await token(rig, "viewer")
    noted = []
    for pause_ms in (0, USE_NOTED_MS - 1, 1, 1):
        await rig.clock.advance(pause_ms)
        await rig.api.get("/me", headers=bearer(secret))
        noted.append((await rig.get("/tokens"))["tokens"][0]["lastUsed"])
    assert noted[0] == noted[1] != noted[2] == noted[3]


async def test_of_two_who_want_one_name_at_once_one_gets_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = Block(monkeypatch, rig.node.store, "records")
    body = {"name": "ci", "role": "viewer"}
    first = asyncio.create_task(rig.post("/tokens", body, 201))
    await block.reached.wait()
    assert (await rig.post("/tokens", body, 409))["code"] == "resource-busy"
    block.open()
    await first
    assert (await rig.post("/tokens", body, 409))["code"] == "name-taken"
    assert len((await rig.get("/tokens"))["tokens"]) == 1


async def test_a_token_that_is_revoked_while_its_use_is_noted_stays_revoked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await rig.post("/tokens", {"name": "ci", "role": "viewer"}, 201)
    noting = Block(monkeypatch, rig.node.store, "keep")
    last = asyncio.create_task(rig.api.get("/me", headers=bearer(made["secret"])))
    await noting.reached.wait()
    Rig.check(await rig.api.delete(f"/tokens/{made['id']}"), 200)
    noting.open()
    await last
    Rig.check(await rig.api.get("/me", headers=bearer(made["secret"])), 401)
    assert (await rig.get("/tokens"))["tokens"] == []


async def test_a_stream_ends_when_its_token_is_revoked(rig: Rig) -> None:
    secret = await token(rig, "viewer")
    (shown,) = (await rig.get("/tokens"))["tokens"]
    async with (
        asyncio.timeout(HANG_S),
        rig.api.stream("GET", "/stream", headers=bearer(secret)) as answer,
    ):
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        await rig.delete(f"/tokens/{shown['id']}")
        assert not [line async for line in lines if line.startswith("data: ")]


@pytest.mark.parametrize("given", ["", "Basic eDp5", "Bearer", "Bearer  x y"])
async def test_a_token_that_is_given_must_be_one_even_on_loopback(rig: Rig, given: str) -> None:
    answer = await rig.api.get("/me", headers={"Authorization": given})
    assert Rig.check(answer, 401)["code"] == "token-needed"


async def test_two_tokens_are_none(rig: Rig) -> None:
    """A proxy may have looked at the other one."""
    good = f"Bearer {await token(rig, 'admin')}"
    for second in (good, "Bearer nonsense", ""):
        given = [("Authorization", good), ("Authorization", second)]
        assert Rig.check(await rig.api.get("/me", headers=given), 401)["code"] == "token-needed"


@pytest.mark.parametrize("expires", ["0s", "2001-01-01T00:00:00Z", "now"])
async def test_a_token_is_good_for_some_time(rig: Rig, expires: str) -> None:
    if expires == "now":
        expires = (await rig.get("/clock"))["now"]
    body = {"name": "t", "role": "viewer", "expires": expires}
    problem = await rig.post("/tokens", body, 422)
    assert (problem["code"], problem["pointer"]) == ("instant-invalid", "/expires")
    assert (await rig.get("/tokens"))["tokens"] == []


async def test_a_revoked_token_is_in_the_history_with_who_and_why(rig: Rig) -> None:
    made = await rig.post("/tokens", {"name": "ci", "role": "operator"}, 201)
    await rig.delete(f"/tokens/{made['id']}", why="it leaked")
    (entry, *_) = (await rig.get("/history"))["entries"]
    assert (entry["by"], entry["why"]) == ("operator:local", "it leaked")
    assert "ci" in entry["text"]
    assert "revoked" in entry["text"]
    problem = await rig.delete(f"/tokens/{made['id']}", 404)
    assert problem["code"] == "unknown-token"
