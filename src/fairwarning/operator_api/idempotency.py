"""Does a repeated request only once: the first answer is stored and given again.

How it works. Before a request with a key is carried out, its key is taken in the store,
as a lease (`record_leases.py`). Every change of the request is stored behind a fence on the key's
record, and the first change also marks the record, in the same commit. So a record always says
whether anything was changed under its key, and a request that has lost its key can change nothing.

| the record               | means                     | the next request with this key           |
|--------------------------|---------------------------|------------------------------------------|
| does not exist           | never sent, or refused    | takes the key and is carried out         |
| has an owner             | under way, nothing stored | must wait until the lease is over, then  |
|                          |                           | takes the key and is carried out         |
| has an owner, has begun  | under way or interrupted, | must wait until the lease is over, then  |
|                          | and something is stored   | takes the key and returns what was done  |
| has no owner             | released by its owner     | does the same, without waiting           |
| has a status             | done, with this answer    | gets this answer, for a day; a large     |
|                          |                           | answer is not stored, nor done again     |

If a request takes several transactions, the mark does not say whether all were done. So a request
that takes over a marked key of this kind changes nothing, and its answer says so. A request that
lost its key answers what the record says: the answer of the request that took the key over, or that
this one is still under way. New objects get ids derived from a seed, which is stored with the key,
so that a request that takes the key over can find them.
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
"""If an answer is larger, only its status is stored."""
_KEY = re.compile(r"[!-~]{1,255}")


class Kept(Leased, frozen=True, kw_only=True):
    asked: str
    """A hash of the request, to refuse another request with the same key."""
    seed: str
    began_ms: Instant
    has_begun: bool = False
    """Whether the request has changed something."""
    status: int = 0
    """The HTTP status of the answer; 0 until there is one."""
    body: str = ""


class KeyHold(Hold[Kept]):
    """A key that is held while its request is carried out in this process."""

    async def mark(self) -> None:
        """Store that the request has begun. Call this before acting outside of the store."""
        await self.change(has_begun=True)

    async def end(self, status: int, body: bytes) -> None:
        await self.change(status=status, body=body.decode(), owner="", until_ms=Instant(0))

    async def refuse(self) -> None:
        """Release the key after a refusal. If nothing was changed, it can be used again."""
        with suppress(StoreDown):
            if (await self.known()).has_begun:
                await self._let_go()
            else:
                await self.drop()

    async def break_off(self) -> None:
        """Release the key after a failure, so that the next try need not wait."""
        # If the store is down, the lease will run out. If the fence is broken, another has the key.
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
        """Carry out the request, or return the stored answer. `asked` identifies the request.

        Raises Problem.
        """
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
        """Take the key, or return the record with the stored answer. Raises Problem."""
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
        """Return the answer of the request that took the key over, or raise Problem."""
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
    """Raises Problem if it is unknown what the first try did, or if its secret was shown."""
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
