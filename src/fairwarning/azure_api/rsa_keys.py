"""Makes and loads RSA keys, and signs JSON Web Tokens with them. Pure.

`cryptography` takes long to load, so import this module only where a key is needed.
"""

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

from fairwarning.azure_api.discovery import ALGORITHM

_BITS = 2048  # NIST allows RSA keys of this size until 2030.
_EXPONENT = 65_537  # The usual public exponent.


def new_key() -> str:
    key = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def load_key(text: str) -> rsa.RSAPrivateKey:
    key = load_pem_private_key(text.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def public_json(key: rsa.RSAPrivateKey) -> Mapping[str, str]:
    """Returns the public half of the key. Its `kid` is the thumbprint of RFC 7638."""
    numbers = key.public_key().public_numbers()
    public = {"e": _number(numbers.e), "kty": "RSA", "n": _number(numbers.n)}
    thumbprint = hashlib.sha256(msgspec.json.encode(public)).digest()
    return {**public, "use": "sig", "alg": ALGORITHM, "kid": _encoded(thumbprint)}


def sign(key: rsa.RSAPrivateKey, claims: Mapping[str, object]) -> str:
    """Returns a JSON Web Token with these claims."""
    header = {"typ": "JWT", "alg": ALGORITHM, "kid": public_json(key)["kid"]}
    content = ".".join(_encoded(msgspec.json.encode(part)) for part in (header, claims))
    signature = key.sign(content.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{content}.{_encoded(signature)}"


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
