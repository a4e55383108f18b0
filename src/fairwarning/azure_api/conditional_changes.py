"""Makes the check of If-Match or If-None-Match and the change after it one step.

Locks keep other requests to ARM away in between, but no fleet file and no operator. Therefore the
first change of each scope is made only if the scope is still as it was when the tag was compared.
Otherwise nothing is changed, and the check is made again.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar, cast

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import Arm, ArmCall
from fairwarning.core.commands import Command
from fairwarning.core.deleting import leavers
from fairwarning.core.model import Actor, EventId, Scope, ScopeId
from fairwarning.engine.protocols import Fence, Receipt
from fairwarning.engine.service import Engine

T = TypeVar("T")
Watch = Callable[[Iterable[Scope]], None]
"""Is told the scopes that the tag was made from, before they are changed."""


class _ScopeChanged(Exception):
    """Somebody has changed a scope since the tag of its resource was compared."""


async def checked_change(
    arm: Arm, call: ArmCall, change: Callable[[Arm, Watch], Awaitable[T]]
) -> T:
    """Runs `change`, which reads a resource, compares its tag, tells Watch and makes the change.

    It is run again if somebody changed the resource in between. Raises ArmError if a part of the
    change was already made then.
    """
    if not call.if_match and not call.if_none_match:
        return await change(arm, lambda _: None)
    while True:
        engine = _WatchingEngine(arm.control.engine)
        control = dataclasses.replace(arm.control, engine=cast(Engine, engine))
        try:
            return await change(dataclasses.replace(arm, control=control), engine.watch)
        except _ScopeChanged:
            if engine.has_changed:
                raise ArmError(
                    409,
                    "AnotherOperationInProgress",
                    "Somebody else changed the resource meanwhile. A part of this change was made "
                    "before that and stays; look at the resource and try again.",
                ) from None


class _WatchingEngine:
    """An engine that refuses the first change of a scope that is not as it was seen."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seen: dict[ScopeId, Scope] = {}
        self.has_changed = False

    def watch(self, scopes: Iterable[Scope]) -> None:
        self._seen = {each.id: each for each in scopes}

    async def submit(
        self,
        scope_id: ScopeId,
        command: Command,
        *,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> Receipt:
        seen = self._seen.get(scope_id)

        def precondition(scope: Scope) -> None:
            if seen is not None and _content(scope) != _content(seen):
                raise _ScopeChanged(scope_id)

        receipt = await self._engine.submit(
            scope_id, command, by=by, why=why, fences=fences, precondition=precondition
        )
        self._seen.pop(scope_id, None)
        self.has_changed = True
        return receipt

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        await self._engine.create(scopes, by=by, why=why, fences=fences)
        self.has_changed = True

    async def approve(
        self, event_id: EventId, *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> Receipt:
        return await self._engine.approve(event_id, by=by, why=why, fences=fences)

    def new_id(self) -> EventId:
        return self._engine.new_id()


def _content(scope: Scope) -> object:
    """Returns what tags depend on: the roster, and which instances are being deleted."""
    return scope.roster, leavers(scope)
