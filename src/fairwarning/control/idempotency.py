"""The same request twice is done once: the first answer is kept and given again.

Theory of operation. Before a request with a key is carried out, its key is taken in the
store; a second one with the same key finds it there. What the operation makes has ids
derived from a seed that is kept with the key. If a crash falls between the change and the
answer, whoever takes the key over inherits the seed, and so finds what was made instead of
making it again. Times here are the wall clock's, whatever clock the fleet has.
"""

import hashlib
import re
import secrets

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairwarning.control.access import Caller
from fairwarning.control.problems import Problem
from fairwarning.core.instants import DAY_MS, MINUTE_MS, Instant
from fairwarning.engine.ports import Clock, RecordChanged, Store, StoreDown

KIND = "idempotency"
KEPT_MS = DAY_MS
ABANDONED_MS = MINUTE_MS
"""Whoever has not answered by then has died; the next may try."""
_KEY = re.compile(r"[!-~]{1,255}")


class Kept(Struct, frozen=True, kw_only=True):
    asked: str
    """A hash of the request, so that one key stands for one question."""
    seed: str
    began_ms: Instant
    status: int = 0
    """0 while it is under way."""
    body: str = ""
    is_free: bool = False
    """Whoever had it does not know what became of it."""


class Taken(Struct, frozen=True, kw_only=True):
    name: str
    kept: Kept


class Idempotency:
    def __init__(self, store: Store, wall: Clock) -> None:
        self._store = store
        self._wall = wall

    async def begin(self, caller: Caller, key: str, asked: bytes) -> Taken:
        """With the answer, if there is one already. Raises Problem."""
        if not _KEY.fullmatch(key):
            raise Problem(
                422,
                "idempotency-key-invalid",
                "Idempotency-Key is 1 to 255 visible ASCII characters without spaces; take another",
            )
        name = hashlib.sha256(f"{caller.name}\0{key}".encode()).hexdigest()
        now, digest = self._wall.now(), hashlib.sha256(asked).hexdigest()
        record = await self._store.record(KIND, name)
        kept = None if record is None else msgspec.json.decode(record.body, type=Kept)
        if kept is not None and kept.began_ms + KEPT_MS < now:
            kept = None
        if kept is not None:
            _refuse_other(kept, digest, now)
            if kept.status:
                return Taken(name=name, kept=kept)
        seed = secrets.token_hex(16) if kept is None else kept.seed
        mine = Kept(asked=digest, seed=seed, began_ms=now)
        try:
            revision = 0 if record is None else record.revision
            await self._keep(name, mine, revision, caller)
        except RecordChanged:
            raise _under_way() from None
        return Taken(name=name, kept=mine)

    async def end(self, caller: Caller, taken: Taken, status: int, body: bytes) -> None:
        done = replace(taken.kept, status=status, body=body.decode())
        await self._keep(taken.name, done, None, caller)

    async def forget(self, caller: Caller, taken: Taken) -> None:
        """It was refused without doing anything, so the key is as good as new."""
        await self._store.drop(KIND, taken.name, by=caller.actor)

    async def let_go(self, caller: Caller, taken: Taken) -> None:
        """It broke off, and may have happened; the next try need not wait."""
        try:
            await self._keep(taken.name, replace(taken.kept, is_free=True), None, caller)
        except StoreDown:
            return  # Then it is free when it counts as abandoned.

    async def _keep(self, name: str, kept: Kept, revision: int | None, caller: Caller) -> None:
        body = msgspec.json.encode(kept).decode()
        await self._store.keep(KIND, name, body, expected=revision, by=caller.actor)


def _refuse_other(kept: Kept, digest: str, now: Instant) -> None:
    if kept.asked != digest:
        raise Problem(
            422,
            "idempotency-key-reused",
            "this Idempotency-Key was used for another request; take a new one",
        )
    if not kept.status and not kept.is_free and kept.began_ms + ABANDONED_MS > now:
        raise _under_way()


def _under_way() -> Problem:
    return Problem(
        409,
        "idempotency-in-progress",
        "a request with this Idempotency-Key is under way; wait for it and ask again",
        headers={"Retry-After": "1"},
    )
