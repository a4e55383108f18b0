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
from fairwarning.engine.ports import Clock, Store, StoreDown
from fairwarning.engine.service import Engine
from fairwarning.engine.views import Member, Views
from fairwarning.metadata import instance as instances
from fairwarning.metadata.answers import (
    BAD_BODY,
    BAD_DRAINED_BODY,
    NOT_FOUND,
    OUT_OF_SERVICE,
    Answer,
    error,
)
from fairwarning.metadata.approvals import read_event_id, read_event_ids
from fairwarning.metadata.asks import Ask, Kind
from fairwarning.metadata.instance import INSTANCE_VERSIONS
from fairwarning.metadata.limits import EndpointRules

_APPROVED = Answer(status=200)
_VERSIONS = Answer(
    status=200,
    body=json.dumps({"apiVersions": INSTANCE_VERSIONS}, separators=(",", ":")).encode(),
)


class Endpoint:
    def __init__(
        self, engine: Engine, views: Views, store: Store, clock: Clock, rules: EndpointRules
    ) -> None:
        self._engine = engine
        self._views = views
        self._store = store
        self._clock = clock
        self._rules = rules
        self._activating: dict[ScopeId, asyncio.Task[None]] = {}

    @property
    def seconds(self) -> Callable[[], float] | None:
        """Reads the clock, unless that is the system's."""
        return None if isinstance(self._clock, SystemClock) else lambda: self._clock.now() / 1000

    def now(self) -> Instant:
        return self._clock.now()

    async def answer(self, ask: Ask, member: Member, body: bytes) -> Answer:
        """For every kind but polls of an activated scope, which memory answers."""
        try:
            match ask.kind:
                case Kind.VERSIONS:
                    return _VERSIONS
                case Kind.INSTANCE:
                    return await self._instance(ask, member)
                case Kind.DRAINED:
                    await self.activate(member)
                    return await self._drained(ask, member, body)
                case Kind.APPROVE:
                    await self.activate(member)
                    return await self._approve(member, body)
                case Kind.EVENTS:
                    raise AssertionError("polls are answered from memory")
        except StoreDown:
            return OUT_OF_SERVICE

    async def activate(self, member: Member) -> None:
        """The first request of a scope; the others wait with it. Raises StoreDown."""
        view = member.view
        view.is_asked = True
        if view.activated_ms is not None:
            return
        task = self._activating.get(view.scope_id)
        if task is None:
            task = asyncio.create_task(self._activate(member))
            self._activating[view.scope_id] = task
            task.add_done_callback(lambda _: self._activating.pop(view.scope_id, None))
        await asyncio.shield(task)

    async def _activate(self, member: Member) -> None:
        delay_ms = self._rules.activation_delay_s * SECOND_MS
        if delay_ms:
            alarm = self._clock.alarm()
            try:
                await alarm.wait(later(self._clock.now(), delay_ms))
            finally:
                alarm.close()
        by = instance_actor(member.name)
        receipt = await self._engine.submit(member.view.scope_id, Activate(), by=by)
        # Another node may have been first, and its signal may not be here yet.
        self._views.put(receipt.scope)

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
