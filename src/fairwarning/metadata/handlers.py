"""Handles the requests that need the store: activation, approvals, drains and metadata."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fairwarning.core.commands import Activate, Approve, ApproveAll, ReportDrained, ReportSeen
from fairwarning.core.instants import SECOND_MS, Instant, later
from fairwarning.core.model import EventId, ScopeId, instance_actor
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import (
    Alarm,
    Clock,
    Commands,
    DocumentStore,
    SchemaTooNew,
    StoreDown,
    within,
)
from fairwarning.engine.scope_view import Member, View
from fairwarning.metadata import instance_metadata as instances
from fairwarning.metadata import responses
from fairwarning.metadata.instance_metadata import INSTANCE_VERSIONS
from fairwarning.metadata.polls import is_ahead, proves_loss
from fairwarning.metadata.requests import Kind, Request, read_event_id, read_event_ids
from fairwarning.metadata.responses import Response
from fairwarning.metadata.settings import EndpointRules

BEGIN_ANEW_EVERY_S = 5.0
"""The least time between two activations of a scope that a client's tag causes. Other nodes may
take this long to notice that the store has lost data.
"""

T = TypeVar("T")
_APPROVED = Response(status=200)
_VERSIONS = Response(
    status=200, body=json.dumps({"apiVersions": INSTANCE_VERSIONS}, separators=(",", ":")).encode()
)


@dataclass(slots=True, eq=False)
class _Activation:
    """An activation that is under way, and the instances that wait for it."""

    members: list[Member] = field(default_factory=list)
    is_delayed: bool = True
    task: asyncio.Task[None] = field(init=False)


class Handlers:
    """Answers the requests that need the store or the engine; `polls.py` answers the others."""

    def __init__(
        self,
        engine: Commands,
        views: Views,
        store: DocumentStore,
        clock: Clock,
        rules: EndpointRules,
    ) -> None:
        self._engine = engine
        self._views = views
        self._store = store
        self._clock = clock
        self._rules = rules
        self._activating: dict[ScopeId, _Activation] = {}
        self._began_anew_s: dict[ScopeId, float] = {}
        """When each scope last got a new activation because of a client's tag."""

    @property
    def seconds(self) -> Callable[[], float] | None:
        """A function that reads the clock in seconds. It is None for the system's clock."""
        return None if isinstance(self._clock, SystemClock) else lambda: self._clock.now() / 1000

    def _within(self, work: Awaitable[T]) -> Awaitable[T]:
        """Wait for the store as long as an instance may have to wait. Raises StoreDown."""
        return within(self._rules.store_s_max, work)

    def now(self) -> Instant:
        return self._clock.now()

    def is_delayed(self, request: Request, member: Member) -> bool:
        """Return whether `answer` first waits for a delayed activation. `answer` may be cancelled
        only during that wait. Later it may have stored a part.
        """
        is_first = member.view.activated_ms is None and request.kind in (Kind.APPROVE, Kind.DRAINED)
        return is_first and self._rules.activation_delay_s > 0

    async def answer(
        self,
        request: Request,
        member: Member,
        body: bytes,
        begins: Callable[[], None] = lambda: None,
    ) -> Response:
        """Return the response to a request of any kind except EVENTS.

        For APPROVE and DRAINED, `begins` is called once the scope is activated. From then on, the
        caller must not cancel this.
        """
        try:
            match request.kind:
                case Kind.VERSIONS:
                    return _VERSIONS
                case Kind.INSTANCE:
                    return self._instance(request, member)
                case Kind.DRAINED:
                    await self.activate(member)
                    begins()
                    return await self._drained(request, member, body)
                case Kind.APPROVE:
                    await self.activate(member)
                    begins()
                    return await self._approve(member, body)
                case Kind.EVENTS:
                    raise AssertionError("polls are answered from memory")
        except SchemaTooNew:
            return responses.OUTDATED
        except StoreDown:
            return responses.OUT_OF_SERVICE

    async def activate(self, member: Member) -> None:
        """Activate the scope if it is not activated, and wait until that is done. Raises StoreDown.

        Requests of the same scope share one activation. Cancel this if the client leaves. If all
        clients leave before the activation delay is over, the scope stays inactive.
        """
        view = member.view
        if view.activated_ms is None:
            await self._wait_for_activation(member)
        view.is_asked = True

    async def _wait_for_activation(self, member: Member) -> None:
        scope_id = member.view.scope_id
        activation = self._activating.get(scope_id)
        if activation is None:
            activation = self._activating[scope_id] = _Activation()
            activation.task = self._begin_activation(scope_id, activation)
        activation.members.append(member)
        try:
            await asyncio.shield(activation.task)
        finally:
            activation.members.remove(member)
            if not activation.members and activation.is_delayed:
                # It is removed at once, so that no new request waits for a cancelled activation.
                self._activating.pop(scope_id)
                activation.task.cancel()

    def _begin_activation(self, scope_id: ScopeId, activation: "_Activation") -> asyncio.Task[None]:
        """Start the task of an activation. The activation delay begins now."""
        delay_ms = self._rules.activation_delay_s * SECOND_MS
        if not delay_ms:
            return asyncio.create_task(self._activate(scope_id, activation))
        until, alarm = later(self._clock.now(), delay_ms), self._clock.alarm()
        task = asyncio.create_task(self._activate(scope_id, activation, alarm, until))
        # The task can't do this itself: if it is cancelled before its first turn, it never runs.
        task.add_done_callback(lambda _: alarm.close())
        return task

    async def _activate(
        self,
        scope_id: ScopeId,
        activation: "_Activation",
        alarm: Alarm | None = None,
        until: Instant | None = None,
    ) -> None:
        if alarm is not None:
            await alarm.wait(until)
        activation.is_delayed = False
        try:
            by = instance_actor(activation.members[0].name)
            receipt = await self._within(self._engine.submit(scope_id, Activate(), by=by))
        finally:
            self._activating.pop(scope_id)
        # Another node may have been first, and its signal may not be here yet.
        self._views.put(receipt.scope)

    async def catch_up(self, tags: str, view: View) -> None:
        """Read the scope again, because the caller's tags may name a newer document. If the tags
        prove that the store lost it, the scope is activated anew. Raises StoreDown.
        """
        await self._within(self._views.refresh(view.scope_id))
        if is_ahead(tags, view):
            # The store has no newer document, so it may have lost that document.
            await self._within(self._engine.check_past())
        if proves_loss(tags, view) and self._may_begin_anew(view.scope_id):
            # No running node has seen the lost document, so only this client knows about it.
            await self._within(self._views.begin_anew(view))

    def _may_begin_anew(self, scope_id: ScopeId) -> bool:
        """Return whether a tag may cause a new activation again. Clients can forge tags."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._began_anew_s.get(scope_id, float("-inf")) < BEGIN_ANEW_EVERY_S:
            return False
        self._began_anew_s[scope_id] = now_s
        return True

    async def report_seen(self, member: Member, ids: tuple[EventId, ...]) -> None:
        """Store that the instance has seen the events. An outage loses this, without an error."""
        command = ReportSeen(event_ids=ids, instance=member.name)
        with contextlib.suppress(StoreDown, Refused):
            by = instance_actor(member.name)
            await self._engine.submit(member.view.scope_id, command, by=by)

    def _instance(self, request: Request, member: Member) -> Response:
        found = self._views.rosters.find(member.view.scope_id, member.name)
        if found is None:
            return responses.NOT_FOUND
        return instances.answer(
            *found, request.instance_version, request.path, is_text=request.is_text
        )

    async def _approve(self, member: Member, body: bytes) -> Response:
        """Approve the events in the body, all or none. An unknown id is refused."""
        ids = read_event_ids(body)
        if ids is None:
            return responses.BAD_BODY
        for id in ids:
            if not member.view.shows(id) and not await self._is_known(member.view.scope_id, id):
                said = f"No event {id or 'of such an id'} is known here; nothing was approved"
                return responses.error(400, f"Bad request. {said}")
        by = instance_actor(member.name)
        # In one transaction, so that an outage never leaves some of them approved.
        command = (
            Approve(event_id=ids[0], by=by) if len(ids) == 1 else ApproveAll(event_ids=ids, by=by)
        )
        try:
            await self._within(self._engine.submit(member.view.scope_id, command, by=by))
        except Refused as refused:
            if refused.code is Code.NOT_IN_SCOPE:
                return responses.NOT_FOUND
            if refused.code not in (Code.EVENT_FINISHED, Code.UNKNOWN_EVENT):
                raise
        return _APPROVED

    async def _drained(self, request: Request, member: Member, body: bytes) -> Response:
        """Return which instances of an event are drained. A POST first adds the caller to them."""
        id = EventId(request.path[0].upper()) if request.path else read_event_id(body)
        if id is None:
            return responses.BAD_DRAINED_BODY
        scope_id = member.view.scope_id
        try:
            if not request.path:
                command = ReportDrained(event_id=id, instance=member.name)
                await self._within(
                    self._engine.submit(scope_id, command, by=instance_actor(member.name))
                )
            scope = await self._within(self._store.read(scope_id))
        except Refused as refused:
            known = refused.code is Code.NOT_IN_SCOPE
            return (
                responses.error(400, f"Bad request. {refused.message}")
                if known
                else responses.NOT_FOUND
            )
        event = scope.events.get(id)
        if event is None or not event.announced:
            return responses.NOT_FOUND
        shown = {
            "EventId": event.id,
            "Drained": list(event.drained),
            "Waiting": [name for name in event.resources if name not in event.drained],
        }
        return Response(status=200, body=json.dumps(shown, separators=(",", ":")).encode())

    async def _is_known(self, scope_id: ScopeId, id: EventId) -> bool:
        """Return whether the scope has or had the event. A late approval is no error."""
        try:
            found, _ = await self._within(self._store.find_event(id))
        except Refused:
            return False
        return found == scope_id
