"""The same request twice is done once: the first answer is kept and given again.

How it works. Before a request with a key is carried out, its key is taken in the store,
as a lease (`leases.py`). All that the request changes is stored behind a fence on the key's
record, and the first change also marks the record, in the same commit. So a record says at any
time whether anything was done under its key, and whoever no longer holds it can do nothing.

| the record               | means                     | who asks now                             |
|--------------------------|---------------------------|------------------------------------------|
| there is none            | not asked, or refused     | takes the key                            |
| has an owner             | under way, nothing stored | must wait; when the lease is over, takes |
|                          |                           | the key and does it                      |
| has an owner, has begun  | under way, or broke off,  | must wait; when the lease is over, takes |
|                          | and something is stored   | the key and only says what was done      |
| has no owner             | the owner gave it up      | the same, without waiting                |
| has a status             | done, with this answer    | gets this answer, for a day; a large one |
|                          |                           | is not kept, and nothing is done again   |

Of a request that takes several transactions a mark does not say whether all were done, so
whoever takes over one that has begun does nothing and says so. An owner that has lost its key
answers what the record says: the answer of whoever took it over, or that this one is under way.
What the route creates has ids derived from a seed that is kept with the key, so that whoever
takes over can find it.
"""

import hashlib
import re
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace as changed

from fairwarning.core.instants import DAY_MS, Instant
from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import FenceBroken, RecordChanged, StoreDown
from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.locks import behind
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.record_leases import Hold, Leased
from fairwarning.operator_api.route import Call, Route

KIND = "idempotency"
KEPT_MS = DAY_MS
ANSWER_BYTES_MAX = 16 * 1024
"""A larger answer is not stored, only that it was given."""
_KEY = re.compile(r"[!-~]{1,255}")


class Kept(Leased, frozen=True, kw_only=True):
    asked: str
    """A hash of the request, so that one key stands for one question."""
    seed: str
    began_ms: Instant
    has_begun: bool = False
    """Whether something was stored for it."""
    status: int = 0
    """It is 0 until there is an answer."""
    body: str = ""


class KeyHold(Hold[Kept]):
    """A key whose request is carried out here."""

    async def mark(self) -> None:
        """Mark the key before something is done outside of the store."""
        await self.change(has_begun=True)

    async def end(self, status: int, body: bytes) -> None:
        await self.change(status=status, body=body.decode(), owner="", until_ms=Instant(0))

    async def refuse(self) -> None:
        """Give the key back after a refusal; if nothing was stored, it can be used again."""
        with suppress(StoreDown):
            if (await self.known()).has_begun:
                await self._let_go()
            else:
                await self.drop()

    async def break_off(self) -> None:
        """Give the key back after a failure, so that the next try need not wait."""
        # Down: it is free when its lease is over. Broken: somebody else has it.
        with suppress(StoreDown, FenceBroken):
            await self._let_go()

    async def _let_go(self) -> None:
        await self.change(owner="", until_ms=Instant(0))

    def _marked(self) -> Kept | None:
        return None if self.state.has_begun else changed(self.state, has_begun=True)


class Answer(NamedTuple):
    body: bytes
    is_replay: bool = False


class Idempotency:
    def __init__(self, control: Control) -> None:
        self._control = control
        self._leases = control.leases

    async def once(self, route: Route, call: Call[Any, Any], key: str, asked: bytes) -> Answer:
        """Answer the request, or repeat the stored answer. `asked` identifies the request."""
        found = await self._begin(call.caller, key, asked)
        if isinstance(found, Kept):
            return _replay(route, found)
        async with self._leases.kept(found):
            try:
                return await self._do(route, call, found)
            except FenceBroken as broken:
                if not found.is_behind(broken):
                    raise
                return _replay(route, await self._answer_instead_of(found))

    async def _begin(self, caller: Caller, key: str, asked: bytes) -> KeyHold | Kept:
        """Take the key, or return the stored answer. Raises Problem."""
        _refuse_key(key)
        name = hashlib.sha256(f"{caller.name}\0{caller.token_id}\0{key}".encode()).hexdigest()
        digest = hashlib.sha256(asked).hexdigest()
        record = await self._leases.store.record(KIND, name)
        kept = None if record is None else msgspec.json.decode(record.body, type=Kept)
        now = await self._leases.now()
        if kept is not None and kept.began_ms + KEPT_MS < now:
            kept = None
        if kept is not None:
            _refuse_other(kept, digest)
            if kept.status:
                return kept
            if not self._leases.is_over(kept, now):
                raise _under_way()
        if kept is None:
            kept = Kept(asked=digest, seed=secrets.token_hex(16), began_ms=now)
        hold = KeyHold(self._leases, KIND, name, kept, by=caller.actor)
        try:
            await self._leases.take(hold, record, now)
        except RecordChanged:
            raise _under_way() from None
        return hold

    async def _do(self, route: Route, call: Call[Any, Any], key: KeyHold) -> Answer:
        has_begun = key.state.has_begun
        try:
            if has_begun:
                _refuse_again(route)
            elif route.is_outward:
                await key.mark()
            call = replace(call, seed=key.state.seed, was_done=has_begun)
            body = await answer_of(route, behind(self._control, key), call)
        except (Problem, Refused):
            await key.refuse()
            raise
        except FenceBroken:
            raise
        except BaseException:
            await key.break_off()
            raise
        is_kept = not route.is_secret and len(body) <= ANSWER_BYTES_MAX
        await key.end(route.status, body if is_kept else b"")
        return Answer(body)

    async def _answer_instead_of(self, lost: KeyHold) -> Kept:
        """Return the answer of the request that took the key over. Raises Problem without one."""
        record = await self._leases.store.record(KIND, lost.record.key)
        kept = None if record is None else msgspec.json.decode(record.body, type=Kept)
        if kept is None or not kept.status or kept.seed != lost.state.seed:
            raise _under_way()
        return kept


async def answer_of(route: Route, control: Control, call: Call[Any, Any]) -> bytes:
    return msgspec.json.encode(await route.handle(control, call))


def _replay(route: Route, kept: Kept) -> Answer:
    if route.is_secret:
        raise _secret_was_shown()
    if not kept.body:
        raise Problem(
            409,
            "answer-not-kept",
            "this was done before, and its answer was too large to be kept; look at what there is",
        )
    return Answer(kept.body.encode(), is_replay=True)


def _refuse_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise Problem(
            422,
            "idempotency-key-invalid",
            "Idempotency-Key is 1 to 255 visible ASCII characters without spaces; take another",
        )


def _refuse_other(kept: Kept, digest: str) -> None:
    if kept.asked != digest:
        raise Problem(
            422,
            "idempotency-key-reused",
            "this Idempotency-Key was used for another request; take a new one",
        )


def _refuse_again(route: Route) -> None:
    """Refuse to repeat a route if nobody can say what its first try did."""
    if route.is_in_steps or route.is_outward:
        raise Problem(
            409,
            "request-broke-off",
            "a request with this Idempotency-Key broke off after it had begun, and nothing more is "
            "done under this key; look at what there is and ask for the rest with a new one",
        )
    if route.is_secret:
        raise _secret_was_shown()


def _under_way() -> Problem:
    return Problem(
        409,
        "idempotency-in-progress",
        "a request with this Idempotency-Key is under way; wait for it and ask again",
        headers={"Retry-After": "1"},
    )


def _secret_was_shown() -> Problem:
    return Problem(
        409,
        "secret-was-shown",
        "this was done before, and its secret is shown once; revoke it and make another",
    )
