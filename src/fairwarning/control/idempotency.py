"""The same request twice is done once: the first answer is kept and given again.

Theory of operation. Before a request with a key is carried out, its key is taken in the
store; a second one with the same key finds it there. What the operation makes has ids
derived from the key, so if a crash falls between the change and the answer, a later try
finds what was made instead of making it again.
"""

import hashlib
import re

import msgspec
from msgspec import Struct

from fairwarning.control.access import Caller
from fairwarning.control.problems import Problem
from fairwarning.core.instants import DAY_MS, MINUTE_MS, Instant
from fairwarning.engine.ports import Clock, RecordChanged, Store

_KEY = re.compile(r"[!-~]{1,255}")
KIND = "idempotency"
KEPT_MS = DAY_MS
ABANDONED_MS = MINUTE_MS
"""Whoever has not answered by then has died; the next may try."""


class Kept(Struct, frozen=True, kw_only=True):
    asked: str
    """A hash of the request, so that one key stands for one question."""
    began_ms: Instant
    status: int = 0
    """0 while it is under way."""
    body: str = ""


class Idempotency:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, caller: Caller, key: str, asked: bytes) -> tuple[str, Kept | None]:
        """The name of the key, and the answer if there is one already. Raises Problem."""
        if not _KEY.fullmatch(key):
            raise Problem(
                422,
                "idempotency-key-invalid",
                "Idempotency-Key is 1 to 255 visible ASCII characters without spaces; take another",
            )
        name = hashlib.sha256(f"{caller.name}\0{key}".encode()).hexdigest()
        now, digest = self._clock.now(), hashlib.sha256(asked).hexdigest()
        record = await self._store.record(KIND, name)
        revision = 0 if record is None else record.revision
        if record is not None:
            kept = msgspec.json.decode(record.body, type=Kept)
            is_old = kept.began_ms + KEPT_MS < now
            if not is_old and kept.asked != digest:
                raise Problem(
                    422,
                    "idempotency-key-reused",
                    "this Idempotency-Key was used for another request; take a new one",
                )
            if not is_old and kept.status:
                return name, kept
            if not is_old and kept.began_ms + ABANDONED_MS > now:
                raise _under_way()
        try:
            await self._keep(name, Kept(asked=digest, began_ms=now), revision, caller)
        except RecordChanged:
            raise _under_way() from None
        return name, None

    async def end(self, caller: Caller, name: str, asked: bytes, status: int, body: bytes) -> None:
        digest = hashlib.sha256(asked).hexdigest()
        kept = Kept(asked=digest, began_ms=self._clock.now(), status=status, body=body.decode())
        await self._keep(name, kept, None, caller)

    async def forget(self, caller: Caller, name: str) -> None:
        """It failed without doing anything, so the key is free again."""
        await self._store.drop(KIND, name, by=caller.actor)

    async def _keep(self, name: str, kept: Kept, revision: int | None, caller: Caller) -> None:
        body = msgspec.json.encode(kept).decode()
        await self._store.keep(KIND, name, body, expected=revision, by=caller.actor)


def _under_way() -> Problem:
    return Problem(
        409,
        "idempotency-in-progress",
        "a request with this Idempotency-Key is under way; wait for it and ask again",
        headers={"Retry-After": "1"},
    )
