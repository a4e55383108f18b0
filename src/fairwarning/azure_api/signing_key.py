"""Keeps the key that signs id tokens, and publishes its public half.

All nodes use the key in the store, so a token that one node signs is valid for all.
"""

import asyncio
import base64
import hashlib
from collections.abc import Mapping

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fairwarning.core.model import ENGINE
from fairwarning.engine.protocols import Record, RecordChanged, Store

KIND, KEY = "signing-key", "openid"
ALGORITHM = "RS256"
"""The algorithm that OpenID requires of every provider."""
_BITS = 2048
_EXPONENT = 65_537


class SigningKey:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: tuple[str, rsa.RSAPrivateKey] | None = None
        """The text of the key in the store, and the key that was read from it."""
        self._unstored = ""
        self._making = asyncio.Lock()

    async def published(self) -> Mapping[str, str]:
        """Returns the public key in the form of a JSON Web Key."""
        return public_json(await self._key())

    async def sign(self, claims: Mapping[str, object]) -> str:
        """Returns a JSON Web Token with these claims."""
        key = await self._key()
        header = {"typ": "JWT", "alg": ALGORITHM, "kid": public_json(key)["kid"]}
        content = ".".join(_encoded(msgspec.json.encode(part)) for part in (header, claims))
        signature = key.sign(content.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{content}.{_encoded(signature)}"

    async def _key(self) -> rsa.RSAPrivateKey:
        text = await self._stored_text()
        if self._loaded is None or self._loaded[0] != text:
            key = load_pem_private_key(text.encode(), None)
            assert isinstance(key, rsa.RSAPrivateKey)
            self._loaded = text, key
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
        self._unstored = self._unstored or await asyncio.to_thread(new_key)
        try:
            record = await self._store.keep(KIND, KEY, self._unstored, expected=0, by=ENGINE)
        except RecordChanged:
            found = await self._store.record(KIND, KEY)
            assert found is not None, "another node has just stored its key"
            record = found
        self._unstored = ""
        return record


def public_json(key: rsa.RSAPrivateKey) -> Mapping[str, str]:
    """Returns the public half of the key. Its `kid` is the thumbprint of RFC 7638."""
    numbers = key.public_key().public_numbers()
    public = {"e": _number(numbers.e), "kty": "RSA", "n": _number(numbers.n)}
    thumbprint = hashlib.sha256(msgspec.json.encode(public)).digest()
    return {**public, "use": "sig", "alg": ALGORITHM, "kid": _encoded(thumbprint)}


def new_key() -> str:
    key = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
