"""Keeps the key that signs id tokens, and publishes its public half.

All nodes use the key in the store, so a token that one node signs is valid for all.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairwarning.core.model import ENGINE
from fairwarning.engine.protocols import Record, RecordChanged, Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import rsa

KIND, KEY = "signing-key", "openid"


class SigningKey:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: tuple[str, rsa.RSAPrivateKey] | None = None
        """The text of the key in the store, and the key that was read from it."""
        self._unstored = ""
        self._making = asyncio.Lock()

    async def published(self) -> Mapping[str, str]:
        """Returns the public key in the form of a JSON Web Key."""
        from fairwarning.azure_api.rsa_keys import public_json  # noqa: PLC0415  It loads slowly.

        return public_json(await self._key())

    async def sign(self, claims: Mapping[str, object]) -> str:
        """Returns a JSON Web Token with these claims."""
        from fairwarning.azure_api.rsa_keys import sign  # noqa: PLC0415  It loads slowly.

        return sign(await self._key(), claims)

    async def _key(self) -> "rsa.RSAPrivateKey":
        text = await self._stored_text()
        if self._loaded is None or self._loaded[0] != text:
            from fairwarning.azure_api.rsa_keys import load_key  # noqa: PLC0415  It loads slowly.

            self._loaded = text, load_key(text)
        return self._loaded[1]

    async def _stored_text(self) -> str:
        """Returns the text of the key in the store. Creates a key if there is none."""
        record = await self._store.record(KIND, KEY)
        if record is None:
            async with self._making:
                record = await self._store.record(KIND, KEY) or await self._made()
        return record.body

    async def _made(self) -> Record:
        # It takes up to a second, in which the event loop must answer others. Anybody may ask, so
        # a key that could not be stored is used at the next try.
        self._unstored = self._unstored or await asyncio.to_thread(_new_key)
        try:
            record = await self._store.keep(KIND, KEY, self._unstored, expected=0, by=ENGINE)
        except RecordChanged:
            found = await self._store.record(KIND, KEY)
            assert found is not None, "another node has just stored its key"
            record = found
        self._unstored = ""
        return record


def _new_key() -> str:
    from fairwarning.azure_api.rsa_keys import new_key  # noqa: PLC0415  It loads slowly.

    return new_key()
