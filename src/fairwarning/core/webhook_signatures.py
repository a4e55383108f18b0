"""This module signs the webhooks that we send, by the Standard Webhooks scheme.

The signed text is `ID.TIMESTAMP.BODY`. The signature is `v1,` and the HMAC-SHA256 in base64. The
secret is `whsec_` and the key in base64.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from fairwarning.core.instants import SECOND_MS, Instant

SECRET_PREFIX = "whsec_"  # noqa: S105  (how every secret begins, and no secret)
KEY_BYTES_MIN = 16  # Shorter keys could be guessed.
KEY_BYTES_MAX = 64  # HMAC-SHA256 hashes longer keys first, so they add nothing.


class BadSecret(ValueError):
    """The text is not a signing secret. The message never contains the text."""


def secret_of(key: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(key).decode()


def key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(SECRET_PREFIX) or not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise BadSecret(
            f"a signing secret is {SECRET_PREFIX} and {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes "
            "in base64"
        )
    return key


def signature_of(secret: str, id: str, timestamp_s: int, body: bytes) -> str:
    signed = b".".join((id.encode(), str(timestamp_s).encode(), body))
    digest = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def signed_headers(secret: str, id: str, now_ms: Instant, body: bytes) -> Mapping[str, str]:
    timestamp_s = now_ms // SECOND_MS
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": signature_of(secret, id, timestamp_s, body),
    }
