"""Azure's clients find the server, trust it and log in; nobody else does."""

import json
import re
import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairwarning.azure_api.discovery import TENANT_ID
from fairwarning.azure_api.login import (
    FORM_BYTES_MAX,
    LIFETIME_S,
)
from fairwarning.node import CannotListen, Node, NodeSettings, NotOnThisMachine
from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.server import Tls
from tests.azure_api.login_client import LoginClient
from tests.azure_api.test_oauth import FORM, GRANT
from tests.operator_api.rig import ME, running
from tests.operator_api.test_auth import bearer, make_certificate, token
from tests.support.patience import HANG_S

VERSION = "api-version=2022-09-01"
OPEN_PATHS = (
    f"/metadata/endpoints?{VERSION}",
    "/adfs/.well-known/openid-configuration",
    f"/{TENANT_ID}/v2.0/.well-known/openid-configuration",
    f"/{TENANT_ID}/.well-known/openid-configuration",
    "/adfs/discovery/keys",
    "/aliases.json",
)


@pytest.mark.parametrize("place", ["/adfs", f"/{TENANT_ID}", f"/{TENANT_ID}/v2.0", "/common/v2.0"])
async def test_whoever_has_a_token_logs_in_with_it_and_is_known_by_its_name(
    azure: LoginClient, place: str
) -> None:
    secret = await token(azure.rig, "operator")
    found = await azure.get(f"{place}/.well-known/openid-configuration")
    form = {"grant_type": "client_credentials", "client_id": "x", "client_secret": secret,
            "scope": "https://x//.default", "client_info": "1", "claims": "{}"}  # fmt: skip
    answer = await azure.client.post(found["token_endpoint"], data=form)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert made["token_type"] == "Bearer"
    assert made["expires_in"] == LIFETIME_S
    me = await azure.client.get("/api/v1/me", headers=bearer(made["access_token"]))
    assert me.json() == {"name": "a-operator", "role": "operator"}


@pytest.mark.parametrize("place", ["adfs", TENANT_ID, "common"])
async def test_a_client_that_names_a_resource_is_answered_in_the_first_versions_form(
    azure: LoginClient, place: str
) -> None:
    secret = await token(azure.rig, "viewer")
    resource = "https://management.example/"
    answer = await azure.log_in(secret, f"/{place}/oauth2/token", resource=resource)
    assert answer.status_code == 200
    now = azure.rig.clock.now() // 1000
    assert answer.json() == {
        "token_type": "Bearer",
        "expires_in": str(LIFETIME_S),
        "ext_expires_in": str(LIFETIME_S),
        "expires_on": str(now + LIFETIME_S),
        "not_before": str(now),
        "resource": resource,
        "access_token": secret,
    }


@pytest.mark.parametrize("path", ["/adfs/oauth2", f"/{TENANT_ID}/oauth2", "/x/oauth2/v2.0"])
async def test_every_refusal_of_a_login_has_the_form_of_oauth(
    azure: LoginClient, path: str
) -> None:
    refused = [
        await azure.log_in("guessed", f"{path}/token"),
        await azure.log_in("guessed", f"{path}/token", grant_type="password"),
        await azure.client.post(f"{path}/token", json={}),
        await azure.client.get(f"{path}/token"),
        await azure.client.put(f"{path}/token"),
    ]
    assert [each.status_code for each in refused] == [401, 400, 400, 405, 405]
    for answer in refused:
        found = answer.json()
        assert set(found) == {
            "error", "error_description", "error_codes", "trace_id", "correlation_id"
        }  # fmt: skip
        assert all(f"AADSTS{code}: " in found["error_description"] for code in found["error_codes"])
    assert refused[0].json()["error_codes"] == [7000215]
    assert refused[2].json()["error_codes"] == []
    assert refused[3].headers["allow"] == "POST"
    assert refused[3].json()["error"] == "invalid_request"
    assert "AADSTS900561" in refused[3].json()["error_description"]


async def test_the_client_may_say_who_it_is_in_a_header(azure: LoginClient) -> None:
    secret = await token(azure.rig, "viewer")
    answer = await azure.client.post(
        "/adfs/oauth2/token", data={"grant_type": "client_credentials"}, auth=("some id", secret)
    )
    assert answer.json()["access_token"] == secret
    both = await azure.client.post(
        "/adfs/oauth2/token",
        data={"grant_type": "client_credentials", "client_secret": secret},
        auth=("x", secret),
    )
    assert (both.status_code, both.json()["error"]) == (400, "invalid_request")


async def test_an_access_token_is_not_said_to_outlive_the_token_that_it_is(
    azure: LoginClient,
) -> None:
    secret = await token(azure.rig, "viewer", expires="10m")
    assert (await azure.log_in(secret)).json()["expires_in"] == 600
    await azure.rig.clock.advance(599_500)
    assert (await azure.log_in(secret)).json()["expires_in"] == 1
    await azure.rig.clock.advance(500)
    assert (await azure.log_in(secret)).status_code == 401


async def test_a_wrong_a_revoked_and_no_secret_are_refused_with_what_to_do(
    azure: LoginClient,
) -> None:
    revoked = await token(azure.rig, "viewer")
    (shown,) = (await azure.rig.get("/tokens"))["tokens"]
    await azure.rig.delete(f"/tokens/{shown['id']}")
    for secret in ("guessed", revoked, "fw_0123456789ab_" + "x" * 43, "", "\N{SNOWMAN}"):
        answer = await azure.log_in(secret)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
        found = answer.json()
        assert found["error"] == "invalid_client"
        assert re.match(r"AADSTS\d+: ", found["error_description"])
        assert not secret or secret not in answer.text
    assert "fairwarning azure-setup" in (await azure.log_in("guessed")).json()["error_description"]


@pytest.mark.parametrize("grant", ["password", "authorization_code", "device_code", "urn:x", ""])
async def test_other_ways_to_log_in_are_told_the_one_that_works(
    azure: LoginClient, grant: str
) -> None:
    answer = await azure.log_in("x", grant_type=grant)
    assert answer.status_code == 400
    assert answer.json()["error"] == "unsupported_grant_type"
    assert "az login --service-principal" in answer.json()["error_description"]


@pytest.mark.parametrize("issuer", ["/adfs", f"/{TENANT_ID}/v2.0"])
async def test_people_are_told_what_to_do_by_a_page_and_by_the_device_code(
    azure: LoginClient, issuer: str
) -> None:
    known = await azure.get(f"{issuer}/.well-known/openid-configuration")
    query = {"redirect_uri": "http://localhost:8400", "state": '"><script>'}
    page = await azure.client.get(known["authorization_endpoint"], params=query)
    assert page.headers["content-type"].startswith("text/html")
    assert "fairwarning azure-setup --run" in page.text
    assert 'action="http://localhost:8400"' in page.text
    assert "<script>" not in page.text
    code = (await azure.client.post(known["device_authorization_endpoint"])).json()
    assert "fairwarning azure-setup --run" in code["message"]
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "none"}
    refused = (await azure.client.post(known["token_endpoint"], data=grant)).json()
    assert refused["error"] == "unsupported_grant_type", "else az would wait for somebody"
    assert "fairwarning azure-setup --run" in refused["error_description"]


@pytest.mark.parametrize("target", ["https://evil.example/", "javascript:alert()", "http://[", ""])
async def test_the_page_sends_nobody_elsewhere(azure: LoginClient, target: str) -> None:
    page = await azure.client.get("/adfs/oauth2/authorize", params={"redirect_uri": target})
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action http://localhost:* " in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert page.status_code == 200
    assert "<form" not in page.text


async def test_a_revoked_token_is_told_how_azures_clients_get_another(
    azure: LoginClient,
) -> None:
    answer = await azure.client.get(
        "/subscriptions?api-version=2022-12-01", headers=bearer("fw_revoked")
    )
    assert answer.status_code == 401
    assert "fairwarning azure-setup --run" in answer.json()["error"]["message"]
    assert "FAIRWARNING_TOKEN" not in answer.text


@pytest.mark.parametrize(("media_type", "raw", "status"), [
    ("application/json", b'{"grant_type": "client_credentials"}', 400),
    (FORM, b"", 400),
    (FORM, b"client_secret=x", 400),
    (FORM, b"grant_type", 400),
    (FORM, GRANT + b"&client_secret=%ff", 400),
    (FORM, GRANT + b"&client_secret=\xff", 400),
    (FORM, GRANT + b"&client_secret=a&client_secret=b", 400),
    (FORM, GRANT + b"&a=b" * 100, 400),
    (FORM, GRANT + b"&a=" + b"b" * FORM_BYTES_MAX, 413),
])  # fmt: skip
async def test_a_form_that_cannot_be_read_is_refused(
    azure: LoginClient, media_type: str, raw: bytes, status: int
) -> None:
    headers = {"Content-Type": media_type}
    answer = await azure.client.post("/adfs/oauth2/token", content=raw, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"] == "invalid_request"
    assert answer.json()["error_description"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
async def test_another_site_learns_nothing_and_logs_in_nowhere(
    azure: LoginClient, headers: dict[str, str]
) -> None:
    for path in (*OPEN_PATHS, f"/tenants?{VERSION}"):
        assert (await azure.client.get(path, headers=headers)).status_code == 403
    secret = await token(azure.rig, "viewer")
    form = {"grant_type": "client_credentials", "client_secret": secret}
    answer = await azure.client.post("/adfs/oauth2/token", data=form, headers=headers)
    assert answer.status_code == 403
    assert secret not in answer.text


async def test_every_image_has_all_that_az_reads(azure: LoginClient) -> None:
    found = (await azure.get("/aliases.json"))["outputs"]["aliases"]["value"]
    assert {"UbuntuLTS", "Ubuntu2204", "Debian11", "CentOS85Gen2"} <= set(found["Linux"])
    assert {"Win2019Datacenter", "Win2022Datacenter"} <= set(found["Windows"])
    for images in found.values():
        for image in images.values():
            assert set(image) == {"publisher", "offer", "sku", "version", "architecture"}
            assert all(image.values())


async def test_there_is_one_tenant_wherever_one_looks(azure: LoginClient) -> None:
    cloud = await azure.get(f"/metadata/endpoints?{VERSION}")
    (tenant,) = (await azure.get(f"/tenants?{VERSION}"))["value"]
    told = await azure.rig.get("/azure")
    subscriptions = (await azure.get(f"/subscriptions?{VERSION}"))["value"]
    seen = {cloud["authentication"]["tenant"], tenant["tenantId"], told["tenant"],
            *(each["tenantId"] for each in subscriptions)}  # fmt: skip
    assert seen == {TENANT_ID}
    assert told["subscription"] in {each["subscriptionId"] for each in subscriptions}


async def test_both_listeners_show_one_fleet_and_end_together(tls_folder: Path) -> None:
    async with running(azure=("127.0.0.1", 0), azure_folder=tls_folder) as rig:
        trust = ssl.create_default_context(cadata=(await rig.get("/azure"))["ca"])
        url = rig.node.azure_url
        async with httpx.AsyncClient(verify=trust, base_url=url, timeout=HANG_S) as client:
            body = {"type": "Reboot", "targets": ["db"]}
            made = (await client.post("/api/v1/events", json=body)).json()
            assert (await rig.get(f"/events/{made['id']}"))["resources"] == ["db"]
    async with httpx.AsyncClient(verify=trust, timeout=HANG_S) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(url)


async def test_without_a_listener_for_them_azures_clients_are_told_nothing() -> None:
    async with running() as rig:
        told = await rig.get("/azure")
        assert (told["url"], told["ca"]) == (None, None)
        assert rig.node.azure_url == ""


async def test_elsewhere_the_control_plane_itself_is_theirs(tmp_path: Path) -> None:
    certificate, key, trusted = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        assert rig.node.azure_url == rig.node.control_url
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        trust = ssl.create_default_context(cafile=str(trusted))
        tokens = Tokens(rig.node.store, rig.node.clock)
        _, secret = await tokens.create("me", Role.VIEWER, None, by=ME, why="")
        async with httpx.AsyncClient(verify=trust, base_url=url, timeout=HANG_S) as client:
            for path in OPEN_PATHS:
                answer = await client.get(path, headers={"Host": "fw.example:8170"})
                assert answer.status_code == 200
                assert "127.0.0.1" not in answer.text
            refused = await client.get(f"/tenants?{VERSION}")
            assert refused.json()["error"]["code"] == "AuthenticationFailed"
            answer = await LoginClient(rig, client).log_in(secret)
            told = await client.get("/api/v1/azure", headers=bearer(answer.json()["access_token"]))
            assert told.json()["ca"] is None


async def test_a_listener_that_is_wanted_must_be_had_and_an_optional_one_is_left_out(
    tls_folder: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        more: Any = {"azure": ("127.0.0.1", taken.getsockname()[1]), "azure_folder": tls_folder}
        with pytest.raises(CannotListen, match="--azure"):
            await Node(NodeSettings(store_url="memory:", **more)).start()
        async with running(is_azure_optional=True, **more) as rig:
            assert rig.node.azure_url == ""
            assert "--azure" in rig.node.azure_trouble
            assert json.loads((await rig.api.get("/azure")).text)["url"] is None


def test_our_own_certificate_is_for_this_machine() -> None:
    with pytest.raises(NotOnThisMachine, match="--tls-certificate"):
        Node(NodeSettings(store_url="memory:", azure=("0.0.0.0", 0)))
