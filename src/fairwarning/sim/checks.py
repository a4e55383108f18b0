"""The ten promises of the engine, each as a check that knows only what an onlooker knows.

`Checker.look` runs after every step. It reads the new part of the journal in order and
compares it with the documents, with the physical world and with what callers were told.
"""

import json
from itertools import groupby

from fairwarning.core.commands import Approve, Cancel, Operate, OperateAll, Postpone, Schedule
from fairwarning.core.document import render
from fairwarning.core.instants import DAY_MS, MINUTE_MS, SECOND_MS, Instant
from fairwarning.core.model import (
    Event,
    EventId,
    EventType,
    InstanceName,
    OperationKind,
    Roster,
    ScopeId,
    ScopeKind,
    Source,
)
from fairwarning.core.refusals import Code
from fairwarning.core.transitions import (
    HOUSEKEEPING,
    Approved,
    Completed,
    Deactivated,
    DocumentChanged,
    InstanceDeleted,
    RosterDeclared,
    Scheduled,
    Started,
)
from fairwarning.core.versions import NEWEST
from fairwarning.engine.ports import Entry, Found, Position
from fairwarning.sim.asked import Told
from fairwarning.sim.broken import demand
from fairwarning.sim.seen import SeenEvent, SeenScope, note
from fairwarning.sim.world import World

_NOTICE_MS = {
    EventType.FREEZE: 15 * MINUTE_MS,
    EventType.REBOOT: 15 * MINUTE_MS,
    EventType.REDEPLOY: 10 * MINUTE_MS,
    EventType.PREEMPT: 30 * SECOND_MS,
    EventType.TERMINATE: 5 * MINUTE_MS,
}
_LIMITED = ("restart", "redeploy", "reimage")


class Checker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._position = Position("")
        self._scopes: dict[ScopeId, SeenScope] = {}
        self._journal: dict[tuple[ScopeId, int], list[str]] = {}
        self._told = 0
        self._documents: dict[tuple[ScopeId, int, int], bytes] = {}
        self._not_before: dict[str, str] = {}
        self._short: dict[EventId, int] = {}
        """Announced with too little notice, unless the same transaction starts it as happened."""

    async def begin(self) -> None:
        for scope_id in self._world.scope_ids:
            roster = (await self._world.store.read(scope_id)).roster
            self._scopes[scope_id] = SeenScope(
                scope_id,
                policy=roster.policy,
                test=roster.test,
                is_scale_set=roster.kind is ScopeKind.SCALE_SET,
                model=roster.model,
            )

    async def look(self) -> None:
        entries = await self._world.store.journal(after=self._position, limit=10_000)
        for (scope_id, _), turn in groupby(
            entries, key=lambda each: (each.scope_id, each.revision)
        ):
            for entry in turn:
                self._position = entry.position
                self._read(entry)
            self._look_at_approved(self._scopes[scope_id], entry.at_ms)
        demand("2 enough notice", not self._short, lambda: f"too little: {self._short}")
        for told in self._world.told[self._told :]:
            self._look_at_answer(told)
        self._told = len(self._world.told)
        for scope in self._scopes.values():
            await self._look_at_document(scope)
            await self._look_at_instances(scope)
            self._look_at_barrier(scope)
        self._look_at_physical_world()
        self._look_at_limit()
        self._look_at_batches()

    async def look_at_end(self) -> None:
        left = await self._world.unfinished()
        demand("9 every event ends", not left, lambda: f"still pending: {left}")
        for scope in self._scopes.values():
            for seen in scope.events.values():
                demand(
                    "9 every event ends",
                    seen.ended_ms is not None,
                    lambda seen=seen: f"{seen.event.id} has no end in the journal",  # type: ignore[misc]
                )

    def _read(self, entry: Entry) -> None:
        scope = self._scopes[entry.scope_id]
        lines = self._journal.setdefault((entry.scope_id, entry.revision), [])
        lines.append(repr(entry.transition))
        match entry.transition:
            case Scheduled():
                note(scope, entry)
                self._look_at_birth(scope, scope.events[entry.transition.event_id], entry)
            case Approved():
                self._look_at_approval(scope, entry.transition)
                note(scope, entry)
            case Started():
                self._look_at_start(scope, scope.events[entry.transition.event_id], entry)
                note(scope, entry)
            case Completed(event_id=event_id):
                self._look_at_completion(event_id)
                note(scope, entry)
            case Deactivated():
                asked = self._world.last_asked.get(entry.scope_id, scope.activated_ms)
                idle_ms = entry.at_ms - max(asked, scope.activated_ms)
                demand("6 same number, same document", idle_ms >= DAY_MS, lambda: f"{entry}")
                note(scope, entry)
            case DocumentChanged(incarnation=incarnation):
                grown = incarnation == scope.incarnation + 1
                demand("6 same number, same document", grown, lambda: f"{entry}")
                note(scope, entry)
            case InstanceDeleted(name=name):
                taken_away = any(line.startswith("Completed(") for line in lines)
                free = taken_away or not scope.awaits(name)
                demand("9 every event ends", free, lambda: f"{name} left an event behind")
                note(scope, entry)
            case RosterDeclared(roster=roster):
                self._look_at_declaration(scope, roster)
                note(scope, entry)
            case _:
                note(scope, entry)

    def _look_at_declaration(self, scope: SeenScope, roster: Roster) -> None:
        """Nobody moves while an event waits for him, and no newcomer inherits one."""
        for instance in roster.live:
            if not scope.awaits(instance.name):
                continue
            known = scope.instances[instance.name]
            same = known.update_domain == instance.update_domain
            demand("3 one update domain", same, lambda name=instance.name: f"{name} moved")  # type: ignore[misc]
            is_new = instance.name in scope.deleted
            demand("10 isolation", not is_new, lambda name=instance.name: f"{name} is new")  # type: ignore[misc]

    def _look_at_birth(self, scope: SeenScope, seen: SeenEvent, entry: Entry) -> None:
        event = seen.event
        demand("9 every event ends", bool(event.resources), lambda: f"{event.id} is for nobody")
        domains = {scope.instances[name].update_domain for name in event.resources}
        demand("3 one update domain", len(domains) == 1, lambda: f"{event.id} spans {domains}")
        dead = scope.deleted.intersection(event.resources)
        demand("9 every event ends", not dead, lambda: f"{event.id} is for {dead}, deleted")
        if not event.announced:
            demand("2 enough notice", self._may_be_silent(scope, seen), lambda: f"{event}")
            return
        if event.source is Source.USER:
            demand("2 enough notice", scope.is_activated, lambda: f"{event.id} on an idle scope")
        least_ms = self._least_notice_ms(scope, seen)
        given_ms = event.not_before_ms - entry.at_ms
        if given_ms < least_ms:
            self._short[event.id] = given_ms

    def _may_be_silent(self, scope: SeenScope, seen: SeenEvent) -> bool:
        event = seen.event
        if event.operation is None:
            return False
        if not scope.is_activated:
            return True
        name = event.resources[0]
        match event.operation:
            case OperationKind.DELETE:
                is_spot = scope.instances[name].priority == "Spot"
                notice_ms = scope.models[name].terminate_notice_ms
                return not scope.is_scale_set or is_spot or notice_ms is None
            case OperationKind.REIMAGE:
                return scope.models[name].reimage_notice_ms is None
            case OperationKind.START | OperationKind.STOP | OperationKind.DEALLOCATE:
                return True
            case _:
                return False

    def _least_notice_ms(self, scope: SeenScope, seen: SeenEvent) -> int:
        event = seen.event
        model = scope.models[event.resources[0]]
        if event.operation is OperationKind.DELETE:
            return model.terminate_notice_ms or 0
        if event.operation is OperationKind.REIMAGE:
            return model.reimage_notice_ms or 0
        if scope.test and event.operation is None:
            return 0
        return scope.policy.notice_ms.get(event.type, _NOTICE_MS[event.type])

    def _look_at_start(self, scope: SeenScope, seen: SeenEvent, entry: Entry) -> None:
        event, at = seen.event, entry.at_ms
        assert isinstance(entry.transition, Started)
        happened = entry.transition.cause == "already-happened"
        # Whether a policy may agree was looked at when it did.
        if not happened and event.announced and not seen.approvals:
            early = event.not_before_ms - at
            demand("1 never early", early <= 0, lambda: f"{event.id} started {early} ms early")
        if happened:
            demand("1 never early", at == seen.born_ms, lambda: f"{event.id} had a notice")
            self._short.pop(event.id, None)
            return
        for other in scope.under_way():
            both = set(other.event.resources).intersection(event.resources)
            demand("3 one update domain", not both, lambda: f"{event.id} hits {both} twice")  # noqa: B023
            if event.source is other.event.source is Source.PLATFORM:
                same = event.update_domain == other.event.update_domain
                pair = f"{event.id} and {other.event.id}"
                demand("3 one update domain", same, lambda pair=pair: pair)  # type: ignore[misc]
        if event.type is EventType.TERMINATE and event.announced and at < event.not_before_ms:
            holders = self._holders(scope, at)
            demand("8 terminate barrier", not holders, lambda: f"{event.id} passed {holders}")

    @staticmethod
    def _holders(scope: SeenScope, now: Instant) -> list[EventId]:
        return [
            each.event.id
            for each in scope.waiting()
            if each.event.type is EventType.TERMINATE
            and each.event.announced
            and not each.approvals
            and each.event.not_before_ms > now
        ]

    def _look_at_approval(self, scope: SeenScope, approved: Approved) -> None:
        seen, by = scope.events[approved.event_id], approved.by
        demand("7 approving is idempotent", by not in seen.approvals, lambda: f"{approved} twice")
        if by.kind == "instance":
            inside = by.name in scope.instances and by.name not in scope.deleted
            demand("10 isolation", inside, lambda: f"{by} is not in {scope.id}")
        if by.kind == "policy":
            policy, operation = scope.policy, seen.event.operation
            truth = {
                "userInitiatedReboot": policy.approve_user_reboot and operation == "restart",
                "userInitiatedRedeploy": policy.approve_user_redeploy and operation == "redeploy",
                "allInstancesDown": policy.approve_all_instances_down and scope.is_all_down(),
            }
            demand("1 never early", truth[by.name], lambda: f"{approved} is not the policy")

    def _look_at_completion(self, event_id: EventId) -> None:
        impact = self._world.physical.impacts.get(event_id)
        done = impact is not None and impact.state is Found.DONE
        demand("4 once", done, lambda: f"{event_id} is called completed, and it was not done")

    async def _look_at_document(self, scope: SeenScope) -> None:
        current = await self._world.store.read(scope.id)
        demand(
            "6 same number, same document",
            (current.is_activated, current.incarnation) == (scope.is_activated, scope.incarnation),
            lambda: f"{scope.id} is at {current.incarnation}, the journal at {scope.incarnation}",
        )
        if not current.is_activated:
            return
        document = render(current, NEWEST)
        key = (scope.id, scope.activations, scope.incarnation)
        same = self._documents.setdefault(key, document) == document
        demand("6 same number, same document", same, lambda: f"{key} has two documents")
        shown = json.loads(document)["Events"]
        expected = [e for e in scope.events.values() if e.event.announced and e.ended_ms is None]
        ids = sorted(each["EventId"] for each in shown)
        demand(
            "9 every event ends",
            ids == sorted(each.event.id for each in expected),
            lambda: f"{scope.id} shows {ids}",
        )
        for each in shown:
            strangers = [name for name in each["Resources"] if name not in scope.instances]
            demand("10 isolation", not strangers, lambda: f"{strangers} in {scope.id}")  # noqa: B023
            if each["NotBefore"]:
                fixed = self._not_before.setdefault(each["EventId"], each["NotBefore"])
                moved = fixed != each["NotBefore"]
                demand("2 enough notice", not moved, lambda: f"NotBefore moved: {each}")  # noqa: B023

    async def _look_at_instances(self, scope: SeenScope) -> None:
        """An operation that is over has done to the instance what it is called."""
        roster = (await self._world.store.read(scope.id)).roster
        for each in roster.live:
            seen = (scope.power[each.name], scope.models[each.name])
            demand(
                "9 every event ends",
                (each.power, each.model) == seen,
                lambda each=each, seen=seen: f"{each.name} is {each.power}, {each.model}: {seen}",  # type: ignore[misc]
            )

    def _look_at_approved(self, scope: SeenScope, at: Instant) -> None:
        """After a turn of the scope nothing is left waiting that one approval was to start."""
        holders = self._holders(scope, at)
        for seen in scope.waiting():
            event = seen.event
            if not seen.approvals or any(_in_the_way(event, e.event) for e in scope.under_way()):
                continue
            is_held = event.type is EventType.TERMINATE and bool(holders)
            demand("7 approving is idempotent", is_held, lambda: f"{event.id} still waits")  # noqa: B023
            is_due = event.not_before_ms <= at
            demand("8 terminate barrier", not is_due, lambda: f"{event.id} is held too long")  # noqa: B023

    def _look_at_barrier(self, scope: SeenScope) -> None:
        """When the last one is approved or due, all go: none is left behind."""
        now = self._world.now()
        if self._holders(scope, now):
            return
        busy = {name for each in scope.under_way() for name in each.event.resources}
        left = [
            each.event.id
            for each in scope.waiting()
            if each.event.type is EventType.TERMINATE
            and each.approvals
            and each.event.source is Source.USER
            and not busy.intersection(each.event.resources)
        ]
        # A barrier that falls by time alone needs a tick, which may still be on its way.
        due = [e for e in scope.waiting() if e.event.not_before_ms <= now]
        others = [e for e in due if e.event.type is EventType.TERMINATE and not e.approvals]
        demand("8 terminate barrier", not left or bool(others), lambda: f"left behind: {left}")

    def _look_at_physical_world(self) -> None:
        physical = self._world.physical
        blind = physical.blind_repeats
        demand("4 once", not blind, lambda: f"repeated without asking: {blind}")
        for impact in physical.impacts.values():
            seen = self._scopes[impact.scope_id].events.get(impact.key)
            demand("4 once", seen is not None, lambda: f"{impact.key} is no event")  # noqa: B023
            demand("4 once", impact.runs <= 1, lambda: f"{impact.key} ran {impact.runs} times")  # noqa: B023
            began = seen is not None and seen.started_ms is not None
            demand("1 never early", began, lambda: f"{impact.key} hit before it started")  # noqa: B023

    def _look_at_limit(self) -> None:
        pending_max = self._world.shape.operations_pending_max
        pending: dict[str, int] = {}
        for scope in self._scopes.values():
            subscription = scope.id.split("/")[0]
            count = sum(
                e.event.operation in _LIMITED and e.event.announced for e in scope.waiting()
            )
            pending[subscription] = pending.get(subscription, 0) + count
        over = {name: count for name, count in pending.items() if pending_max < count}
        demand("limit on operations", not pending_max or not over, lambda: f"pending: {over}")

    def _look_at_batches(self) -> None:
        """Of an operation on several instances, all was begun or nothing."""
        for asked in self._world.asked:
            if isinstance(asked.command, OperateAll):
                events = self._scopes[asked.scope_id].events
                begun = {event_id in events for event_id, _ in asked.command.targets}
                demand("all or none", len(begun) <= 1, lambda: f"{asked}")  # noqa: B023

    def _look_at_answer(self, told: Told) -> None:
        """Whatever a caller was told, happened, and happened as told."""
        command = told.asked.command
        if told.refused is not None:
            if isinstance(command, Approve):
                fair = self._is_fair_refusal(told, command)
                demand("7 approving is idempotent", fair, lambda: f"{told}")
            return
        assert told.receipt is not None
        demand("5 nothing acknowledged is lost", self._is_done(told), lambda: f"{told.asked}")
        history = [t for t in told.receipt.transitions if not isinstance(t, HOUSEKEEPING)]
        if not history:
            return
        key = (told.receipt.scope.id, told.receipt.scope.revision)
        written = self._journal.get(key, [])
        demand(
            "5 nothing acknowledged is lost",
            written == [repr(each) for each in history],
            lambda: f"told {history}, written {written}",
        )

    def _is_done(self, told: Told) -> bool:
        events = self._scopes[told.asked.scope_id].events
        match told.asked.command:
            case Schedule(event_id=event_id) | Operate(event_id=event_id):
                return event_id in events
            case OperateAll(targets=targets):
                return all(event_id in events for event_id, _ in targets)
            case Postpone(new_event_id=event_id):
                return event_id in events
            case Approve(event_id=event_id):
                return bool(events[event_id].approvals) or not events[event_id].is_waiting
            case Cancel(event_id=event_id):
                return events[event_id].ended_ms is not None
            case _:
                return True

    def _is_fair_refusal(self, told: Told, command: Approve) -> bool:
        """An approval is refused only to strangers, and once the event is over."""
        assert told.refused is not None
        scope = self._scopes[told.asked.scope_id]
        name = InstanceName(command.by.name)
        match told.refused.code:
            case Code.NOT_IN_SCOPE:
                return name not in scope.instances or name in scope.was_deleted
            case Code.EVENT_FINISHED | Code.UNKNOWN_EVENT:
                return scope.events[command.event_id].ended_ms is not None
            case _:
                return False


def _in_the_way(event: Event, started: Event) -> bool:
    both_platform = event.source is started.source is Source.PLATFORM
    another_domain = both_platform and event.update_domain != started.update_domain
    return another_domain or bool(set(event.resources).intersection(started.resources))
