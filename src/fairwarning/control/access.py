"""Who may do what: roles, and the tokens that carry them. Pure.

A token is `fw_ID_SECRET`. The secret has 256 random bits, so a plain hash protects it as
well as a slow one would; only the hash is kept.
"""

import hashlib
import hmac
import re
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, operator_actor

_TOKEN = re.compile(r"fw_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Role(IntEnum):
    """Each may do what those before it may."""

    VIEWER = 1
    APPROVER = 2
    OPERATOR = 3
    ADMIN = 4

    @property
    def word(self) -> str:
        return self.name.lower()


ROLES = {role.word: role for role in Role}


class Token(Struct, frozen=True, kw_only=True):
    """As it is kept; the secret itself is nowhere."""

    id: str
    name: str
    role: str
    hash: str
    created_ms: Instant
    created_by: str
    expires_ms: Instant | None = None
    last_used_ms: Instant | None = None


class Caller(NamedTuple):
    name: str
    role: Role
    token_id: str = ""
    """Names are given again, ids of tokens are not. Empty: without a token, on loopback."""
    address: str = ""
    """Where the request came from, of a caller without a token."""

    @property
    def key(self) -> str:
        """What limits for one caller go by."""
        return self.token_id or self.address

    @property
    def actor(self) -> Actor:
        return operator_actor(self.name)


LOCAL = Caller("local", Role.ADMIN)
"""Whoever reaches a loopback listener without a token is already on this machine."""


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def split(text: str) -> tuple[str, str] | None:
    """The id and the secret of what may be a token."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else (found[1], found[2])


def fits(token: Token, secret: str, now: Instant) -> bool:
    is_alive = token.expires_ms is None or now < token.expires_ms
    return hmac.compare_digest(token.hash, hashed(secret)) and is_alive
