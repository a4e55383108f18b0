"""What takes longer than a look into memory: activation, approvals, instance metadata."""

import asyncio
import contextlib
import json
from collections.abc import Callable

from fairwarning.core.commands import Activate, Approve, ReportDrained, ReportSeen
from fairwarning.core.instants import SECOND_MS, Instant, later
from fairwarning.core.model import EventId, ScopeId, instance_actor
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Alarm, Clock, Store, StoreDown
from fairwarning.engine.scope_view import Member, View
from fairwarning.engine.service import Engine
from fairwarning.metadata import instance_metadata as instances
from fairwarning.metadata.instance_metadata import INSTANCE_VERSIONS
from fairwarning.metadata.polls import is_ahead, proves_loss
from fairwarning.metadata.requests import Ask, Kind, read_event_id, read_event_ids
from fairwarning.metadata.responses import (
    BAD_BODY,
    BAD_DRAINED_BODY,
    NOT_FOUND,
    OUT_OF_SERVICE,
    Answer,
    error,
)
from fairwarning.metadata.settings import EndpointRules

BEGIN_ANEW_EVERY_S = 5.0
"""As long as it may take other nodes to notice that the store has stepped back."""

_APPROVED = Answer(status=200)
_VERSIONS = Answer(
    status=200,
    body=json.dumps({"apiVersions": INSTANCE_VERSIONS}, separators=(",", ":")).encode(),
)


class _Activation:
    """One that is under way, and the instances that wait for it."""

    __slots__ = ("is_delayed", "members", "task")

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.is_delayed = True
        self.task: asyncio.Task[None]


class Endpoint:
    def __init__(
        self, engine: Engine, views: Views, store: Store, clock: Clock, rules: EndpointRules
    ) -> None:
        self._engine = engine
        self._views = views
        self._store = store
        self._clock = clock
        self._rules = rules
        self._activating: dict[ScopeId, _Activation] = {}
        self._began_anew_s: dict[ScopeId, float] = {}
        """When a scope last began anew because of a client's tag; only of those that did."""

    @property
    def seconds(self) -> Callable[[], float] | None:
        """Reads the clock, unless that is the system's."""
        return None if isinstance(self._clock, SystemClock) else lambda: self._clock.now() / 1000

    def now(self) -> Instant:
        return self._clock.now()

    def is_delayed(self, ask: Ask, member: Member) -> bool:
        """Whether `answer` first waits for a delayed activation. Whoever leaves is to be cancelled
        then, and not later: what has begun may be half stored.
        """
        is_first = member.view.activated_ms is None and ask.kind in (Kind.APPROVE, Kind.DRAINED)
        return is_first and self._rules.activation_delay_s > 0

    async def answer(
        self, ask: Ask, member: Member, body: bytes, begins: Callable[[], None] = lambda: None
    ) -> Answer:
        """For every kind but polls of an activated scope, which memory answers. `begins` is
        called once the scope is activated.
        """
        try:
            match ask.kind:
                case Kind.VERSIONS:
                    return _VERSIONS
                case Kind.INSTANCE:
                    return await self._instance(ask, member)
                case Kind.DRAINED:
                    await self.activate(member)
                    begins()
                    return await self._drained(ask, member, body)
                case Kind.APPROVE:
                    await self.activate(member)
                    begins()
                    return await self._approve(member, body)
                case Kind.EVENTS:
                    raise AssertionError("polls are answered from memory")
        except StoreDown:
            return OUT_OF_SERVICE

    async def activate(self, member: Member) -> None:
        """The first request of a scope; the others wait with it. Raises StoreDown.

        Whoever leaves during a delay is to be cancelled here. If all have left before it is over,
        the scope stays as it is.
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
                # At once, so that nobody comes to wait for what will not happen.
                self._activating.pop(scope_id)
                activation.task.cancel()

    def _begin_activation(self, scope_id: ScopeId, activation: "_Activation") -> asyncio.Task[None]:
        """The delay counts from here, and not from the first turn of the task."""
        delay_ms = self._rules.activation_delay_s * SECOND_MS
        if not delay_ms:
            return asyncio.create_task(self._activate(scope_id, activation))
        until, alarm = later(self._clock.now(), delay_ms), self._clock.alarm()
        task = asyncio.create_task(self._activate(scope_id, activation, alarm, until))
        # Not by the task itself: one that is cancelled before its first turn never runs.
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
            receipt = await self._engine.submit(scope_id, Activate(), by=by)
        finally:
            self._activating.pop(scope_id)
        # Another node may have been first, and its signal may not be here yet.
        self._views.put(receipt.scope)

    async def catch_up(self, tags: str, view: View) -> None:
        """The caller has these tags, which may name a newer document. Raises StoreDown."""
        await self._views.refresh(view.scope_id)
        if is_ahead(tags, view):
            # Nothing newer is stored, so the store may have lost it.
            await self._engine.check_past()
        if proves_loss(tags, view) and self._may_begin_anew(view.scope_id):
            # Who had shown it is gone, so this client is the only witness.
            await self._views.begin_anew(view)

    def _may_begin_anew(self, scope_id: ScopeId) -> bool:
        """Not more often than every few seconds: an instance can make up a tag."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._began_anew_s.get(scope_id, float("-inf")) < BEGIN_ANEW_EVERY_S:
            return False
        self._began_anew_s[scope_id] = now_s
        return True

    async def report_seen(self, member: Member, ids: tuple[EventId, ...]) -> None:
        """For the history only, so an outage of the store may swallow it."""
        command = ReportSeen(event_ids=ids, instance=member.name)
        with contextlib.suppress(StoreDown, Refused):
            by = instance_actor(member.name)
            await self._engine.submit(member.view.scope_id, command, by=by)

    async def _instance(self, ask: Ask, member: Member) -> Answer:
        scope = await self._store.read(member.view.scope_id)
        if not scope.roster.has_live(member.name):
            return NOT_FOUND
        instance = scope.roster.instances[member.name]
        return instances.answer(
            scope, instance, ask.instance_version, ask.path, is_text=ask.is_text
        )

    async def _approve(self, member: Member, body: bytes) -> Answer:
        """An unknown id refuses the whole request, before anything is approved."""
        ids = read_event_ids(body)
        if ids is None:
            return BAD_BODY
        for id in ids:
            if not member.view.shows(id) and not await self._is_known(member.view.scope_id, id):
                said = f"No event {id or 'of such an id'} is known here; nothing was approved"
                return error(400, f"Bad request. {said}")
        by = instance_actor(member.name)
        for id in ids:
            try:
                await self._engine.submit(member.view.scope_id, Approve(event_id=id, by=by), by=by)
            except Refused as refused:
                if refused.code is Code.NOT_IN_SCOPE:
                    return NOT_FOUND
                if refused.code not in (Code.EVENT_FINISHED, Code.UNKNOWN_EVENT):
                    raise
        return _APPROVED

    async def _drained(self, ask: Ask, member: Member, body: bytes) -> Answer:
        """Who of an event's instances is ready; a POST says first that this one is."""
        id = EventId(ask.path[0].upper()) if ask.path else read_event_id(body)
        if id is None:
            return BAD_DRAINED_BODY
        scope_id = member.view.scope_id
        try:
            if not ask.path:
                command = ReportDrained(event_id=id, instance=member.name)
                await self._engine.submit(scope_id, command, by=instance_actor(member.name))
            scope = await self._store.read(scope_id)
        except Refused as refused:
            known = refused.code is Code.NOT_IN_SCOPE
            return error(400, f"Bad request. {refused.message}") if known else NOT_FOUND
        event = scope.events.get(id)
        if event is None or not event.announced:
            return NOT_FOUND
        shown = {
            "EventId": event.id,
            "Drained": list(event.drained),
            "Waiting": [name for name in event.resources if name not in event.drained],
        }
        return Answer(status=200, body=json.dumps(shown, separators=(",", ":")).encode())

    async def _is_known(self, scope_id: ScopeId, id: EventId) -> bool:
        """An event that is over stays known for ever, so that a late approval is no error."""
        try:
            found, _ = await self._store.find_event(id)
        except Refused:
            return False
        return found == scope_id
