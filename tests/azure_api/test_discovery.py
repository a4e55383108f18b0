"""Azure's clients learn from the server what it is: as a cloud, and as an OpenID provider."""

from typing import Any

import httpx
import pytest

from fairwarning.azure_api.discovery import TENANT_ID
from tests.azure_api.login_client import LoginClient

VERSION = "api-version=2022-09-01"
ISSUERS = ("/adfs", f"/{TENANT_ID}", f"/{TENANT_ID}/v2.0", "/common/v2.0", "/adfs/v2.0")
REQUIRED_BY_OPENID = {
    "issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "response_types_supported",
    "subject_types_supported", "id_token_signing_alg_values_supported",
}  # fmt: skip


async def test_a_cloud_is_announced_under_the_name_that_the_client_used(
    azure: LoginClient,
) -> None:
    port = httpx.URL(azure.rig.node.azure_url).port
    for base in (f"https://127.0.0.1:{port}", f"https://localhost:{port}"):
        cloud = await azure.get(f"{base}/metadata/endpoints?{VERSION}")
        assert cloud["resourceManager"] == base
        assert cloud["authentication"]["audiences"] == [f"{base}/"]
        assert cloud["suffixes"] == {}
        login = cloud["authentication"]["loginEndpoint"]
        assert login == f"{base}/adfs", "another path makes clients ask Microsoft about it"
        found = await azure.get(f"{login}/.well-known/openid-configuration")
        assert found["token_endpoint"] == f"{base}/adfs/oauth2/token"
        assert found["authorization_endpoint"].startswith(base)


@pytest.mark.parametrize(("version", "kind"), [
    ("1.0", dict), ("2015-01-01", dict), ("2018-05-01", list), ("2019-05-01", list),
    ("2019-05-01-preview", list), ("2019-10-01", dict), ("2022-09-01", dict),
])  # fmt: skip
async def test_versions_between_2015_and_2019_list_the_clouds(
    azure: LoginClient, version: str, kind: type
) -> None:
    assert isinstance(await azure.get(f"/metadata/endpoints?api-version={version}"), kind)


@pytest.mark.parametrize("version", ["1.0", "2015-01-01"])
async def test_the_oldest_versions_have_what_azure_stacks_tools_demand(
    azure: LoginClient, version: str
) -> None:
    base = azure.rig.node.azure_url
    found = await azure.get(f"/metadata/endpoints?api-version={version}")
    assert found == {
        "galleryEndpoint": f"{base}/",
        "graphEndpoint": f"{base}/",
        "portalEndpoint": f"{base}/",
        "authentication": {"loginEndpoint": f"{base}/adfs", "audiences": [f"{base}/"]},
    }


async def test_the_newer_versions_name_a_graph_so_that_az_finds_its_file_complete(
    azure: LoginClient,
) -> None:
    base = azure.rig.node.azure_url
    for version in ("2019-05-01", "2022-09-01"):
        found: Any = await azure.get(f"/metadata/endpoints?api-version={version}")
        cloud = found[0] if isinstance(found, list) else found
        for name in ("graph", "graphAudience", "microsoftGraphResourceId", "portal", "gallery"):
            assert cloud[name] == f"{base}/"


@pytest.mark.parametrize("query", ["", "?api-version=", "?api-version=new", "?api-version=1.1"])
async def test_a_cloud_is_announced_to_those_who_name_a_version(
    azure: LoginClient, query: str
) -> None:
    answer = await azure.client.get(f"/metadata/endpoints{query}")
    assert answer.status_code == 400
    assert "ApiVersionParameter" in answer.json()["error"]["code"]


@pytest.mark.parametrize("issuer", ISSUERS)
async def test_the_openid_configuration_has_all_that_openid_requires(
    azure: LoginClient, issuer: str
) -> None:
    found = await azure.get(f"{issuer}/.well-known/openid-configuration")
    assert set(found) >= REQUIRED_BY_OPENID
    assert all(found[name] for name in REQUIRED_BY_OPENID)
    assert found["issuer"] == f"{azure.rig.node.azure_url}{issuer}"
    assert "RS256" in found["id_token_signing_alg_values_supported"]
    (key,) = (await azure.get(found["jwks_uri"]))["keys"]
    assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")


async def test_the_first_version_of_the_login_has_its_own_endpoints(
    azure: LoginClient,
) -> None:
    found = await azure.get(f"/{TENANT_ID}/.well-known/openid-configuration")
    assert found["token_endpoint"].endswith(f"/{TENANT_ID}/oauth2/token")
    newer = await azure.get(f"/{TENANT_ID}/v2.0/.well-known/openid-configuration")
    assert newer["token_endpoint"].endswith(f"/{TENANT_ID}/oauth2/v2.0/token")


@pytest.mark.parametrize("what", ["users", "servicePrincipals", "groups", "applications"])
async def test_the_graph_that_is_named_knows_nobody(azure: LoginClient, what: str) -> None:
    assert await azure.get(f"/v1.0/{what}?$filter=appId eq 'x'") == {"value": []}


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "me"), ("GET", "users/ada"), ("GET", "gadgets"), ("POST", "applications"),
])  # fmt: skip
async def test_anything_else_of_the_graph_is_not_there(
    azure: LoginClient, method: str, path: str
) -> None:
    answer = await azure.client.request(method, f"/v1.0/{path}")
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "Request_ResourceNotFound"
    assert "no users" in error["message"]
