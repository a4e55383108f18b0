"""What the server signs can be checked with the key that it publishes."""

import asyncio
from typing import Any

import jwt
import pytest

from fairwarning.azure_api import rsa_keys
from fairwarning.azure_api.login import LIFETIME_S
from fairwarning.azure_api.rsa_keys import new_key
from fairwarning.azure_api.signing_key import KEY, KIND, SigningKey
from fairwarning.core.model import ENGINE
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Record, StoreDown
from fairwarning.stores.memory import MemoryStore
from tests.azure_api.login_client import LoginClient
from tests.operator_api.test_auth import token


async def published_key(azure: LoginClient) -> Any:
    found = await azure.get("/adfs/.well-known/openid-configuration")
    (key,) = (await azure.get(found["jwks_uri"]))["keys"]
    return key


async def test_an_id_token_can_be_checked_with_the_published_key(azure: LoginClient) -> None:
    secret = await token(azure.rig, "operator")
    made = (await azure.log_in(secret, scope="openid", client_id="me")).json()
    key = await published_key(azure)
    issuer = f"{azure.rig.node.azure_url}/adfs"
    assert jwt.get_unverified_header(made["id_token"])["kid"] == key["kid"]
    claims = jwt.decode(
        made["id_token"], jwt.PyJWK(key), algorithms=["RS256"], audience="me", issuer=issuer,
        options={"verify_exp": False, "verify_iat": False},
    )  # fmt: skip
    assert claims["exp"] - claims["iat"] == LIFETIME_S
    assert claims["name"] == "a-operator"
    assert secret not in made["id_token"]


async def test_an_id_token_opens_nothing(azure: LoginClient) -> None:
    secret = await token(azure.rig, "operator")
    made = (await azure.log_in(secret, scope="openid")).json()
    headers = {"Authorization": f"Bearer {made['id_token']}"}
    answer = await azure.client.get("/subscriptions?api-version=2022-12-01", headers=headers)
    assert answer.status_code == 401


async def test_who_does_not_ask_for_an_id_token_gets_none(azure: LoginClient) -> None:
    secret = await token(azure.rig, "viewer")
    assert "id_token" not in (await azure.log_in(secret, scope="https://x//.default")).json()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(VirtualClock())


async def test_all_nodes_publish_the_same_key_and_no_secret(store: MemoryStore) -> None:
    nodes = [SigningKey(store) for _ in range(3)]
    published = await asyncio.gather(*(node.published() for node in nodes))
    assert published[0] == published[1] == published[2]
    assert set(published[0]) == {"kty", "use", "alg", "kid", "n", "e"}


async def test_a_store_with_another_past_has_another_key(store: MemoryStore) -> None:
    key = SigningKey(store)
    before = await key.published()
    await store.drop(KIND, KEY, by=ENGINE)
    after = await key.published()
    assert after["n"] != before["n"]


class FullStore(MemoryStore):
    """A store that takes no writes until it is emptied."""

    is_full = True

    async def keep(self, *given: Any, **more: Any) -> Record:
        if self.is_full:
            raise StoreDown
        return await super().keep(*given, **more)


async def test_a_key_is_made_once_however_many_ask_and_however_often_the_store_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def counted() -> str:
        made.append(new_key())
        return made[-1]

    monkeypatch.setattr(rsa_keys, "new_key", counted)
    store = FullStore(VirtualClock())
    key = SigningKey(store)
    asked = [key.published() for _ in range(5)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(each, StoreDown) for each in answers)
    store.is_full = False
    assert await key.published()
    assert len(made) == 1
