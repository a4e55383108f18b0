"""Roles, callers and tokens: who may do what.

A token is `fw_ID_SECRET`. The secret has 256 random bits, so a plain hash protects it as
well as a slow one would; only the hash is kept.
"""

import hashlib
import hmac
import re
import secrets
from enum import IntEnum
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.model import ENGINE, Actor, operator_actor
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import Clock, RecordChanged, Store
from fairwarning.operator_api.problems import Problem

_TOKEN = re.compile(r"fw_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Role(IntEnum):
    """Each role may do everything that the roles before it may do."""

    VIEWER = 1
    APPROVER = 2
    OPERATOR = 3
    ADMIN = 4

    @property
    def word(self) -> str:
        return self.name.lower()


ROLES = {role.word: role for role in Role}


class Token(Struct, frozen=True, kw_only=True):
    """A token as it is stored: only a hash of its secret is kept."""

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
    """The id of the token; empty without a token. Unlike a name, an id is never used again."""
    address: str = ""
    """The address of a caller without a token."""

    @property
    def key(self) -> str:
        """Return the key that identifies this caller when limits are counted."""
        return self.token_id or self.address

    @property
    def actor(self) -> Actor:
        return operator_actor(self.name)


LOCAL = Caller("local", Role.ADMIN)
"""The caller without a token on a loopback listener, who is on this machine."""


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def split(text: str) -> tuple[str, str] | None:
    """Return the id and the secret of a token's text. It is None if the text does not have
    the form of a token.
    """
    found = _TOKEN.fullmatch(text)
    return None if found is None else (found[1], found[2])


def fits(token: Token, secret: str, now: Instant) -> bool:
    is_alive = token.expires_ms is None or now < token.expires_ms
    return hmac.compare_digest(token.hash, hashed(secret)) and is_alive


KIND = "token"
USE_NOTED_MS = MINUTE_MS
"""The last use of a token is stored at most this often, so most requests need no write."""
TOKENS_MAX = 1_000  # All of them are listed on one page; more are not made by people.
RESERVED_NAMES = frozenset({LOCAL.name, "starter", "fleet-file", "store-owner"})
"""Names in the history that belong to no token."""


class Tokens:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def through(self, store: Store) -> "Tokens":
        """Return an object with the same tokens that writes its changes to `store`."""
        return Tokens(store, self._clock)

    async def create(
        self, name: str, role: Role, expires_ms: Instant | None, *, by: Actor, why: str
    ) -> tuple[Token, str]:
        """Create a token. Return it and its text, which cannot be shown again."""
        known = await self.page("", TOKENS_MAX)
        if len(known) >= TOKENS_MAX:
            raise Problem(409, "too-many-tokens", "there are 1,000 tokens; revoke some first")
        if name in RESERVED_NAMES or any(each.name == name for each in known):
            raise Problem(
                409,
                "name-taken",
                f"the history needs one name for each, and {name!r} is taken; choose another",
            )
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        token = Token(
            id=id,
            name=name,
            role=role.word,
            hash=hashed(secret),
            created_ms=self._clock.now(),
            created_by=by.name,
            expires_ms=expires_ms,
        )
        note = Noted(subject=f"token:{name}", action="created", detail=role.word)
        body = msgspec.json.encode(token).decode()
        await self._store.keep(KIND, id, body, expected=0, note=note, by=by, why=why)
        return token, f"fw_{id}_{secret}"

    async def page(self, after: str, limit: int) -> list[Token]:
        return [_token(each.body) for each in await self._store.records(
            KIND, after=after, limit=limit)]  # fmt: skip

    async def revoke(self, id: str, *, by: Actor, why: str) -> None:
        record = await self._store.record(KIND, id)
        if record is not None:
            token = _token(record.body)
            note = Noted(subject=f"token:{token.name}", action="revoked", detail=token.role)
            if await self._store.drop(KIND, id, note=note, by=by, why=why):
                return
        raise Problem(404, "unknown-token", "there is no such token; list them to see the ids")

    async def caller(self, text: str) -> Caller | None:
        """Return the caller of this token, or None if it is unknown or expired."""
        token = await self.valid(text)
        return None if token is None else Caller(token.name, ROLES[token.role], token.id)

    async def valid(self, text: str) -> Token | None:
        """Return the token with this text, or None if unknown or expired. Stores its last use."""
        parts = split(text)
        if parts is None:
            return None
        id, secret = parts
        record = await self._store.record(KIND, id)
        if record is None:
            return None
        token, now = _token(record.body), self._clock.now()
        if not fits(token, secret, now):
            return None
        if token.last_used_ms is None or now - token.last_used_ms >= USE_NOTED_MS:
            await self._note_use(msgspec.structs.replace(token, last_used_ms=now), record.revision)
        return token

    async def _note_use(self, token: Token, revision: int) -> None:
        body = msgspec.json.encode(token).decode()
        try:
            await self._store.keep(KIND, token.id, body, expected=revision, by=ENGINE)
        except RecordChanged:
            return  # Another request stored the use, or the token was just revoked.


def _token(body: str) -> Token:
    return msgspec.json.decode(body, type=Token)
