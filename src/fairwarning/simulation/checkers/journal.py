"""Reads the journal in order and checks promises 1, 2, 3, 7, 8, 9 and 10.

It uses only what an outside observer knows, and none of the engine's own rules.
"""

from collections.abc import Sequence
from itertools import groupby

from fairwarning.core import transitions
from fairwarning.core.commands import Declare
from fairwarning.core.instants import DAY_MS, MINUTE_MS, SECOND_MS, Instant
from fairwarning.core.model import Event, EventId, EventType, OperationKind, Roster, Source
from fairwarning.engine.protocols import Entry, Found
from fairwarning.simulation import observed_state
from fairwarning.simulation.observed_state import ObservedEvent, ObservedScope, ObservedWorld
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import World

# The times that Azure documents, written here again, because the checker must not ask the core.
_NOTICE_MS = {
    EventType.FREEZE: 15 * MINUTE_MS,
    EventType.REBOOT: 15 * MINUTE_MS,
    EventType.REDEPLOY: 10 * MINUTE_MS,
    EventType.PREEMPT: 30 * SECOND_MS,
    EventType.TERMINATE: 5 * MINUTE_MS,
}


class JournalChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._short: dict[EventId, int] = {}
        """Events with too little notice. It is allowed if they start in the same commit."""

    def check(self, seen: ObservedWorld, entries: Sequence[Entry]) -> None:
        """Checks the new journal entries, and adds them to what was `seen`."""
        self._short.clear()
        commits = groupby(entries, key=lambda each: (each.scope_id, each.revision))
        for (scope_id, _), commit in commits:
            for entry in commit:
                seen.entries.append(entry)
                if entry.scope_id:
                    self._read(seen, entry)
            if scope_id:
                self._check_approved(seen.scopes[scope_id], entry.at_ms)
        demand("2 enough notice", not self._short, lambda: f"too little: {self._short}")
        for scope in seen.scopes.values():
            self._check_barrier(scope)

    def check_at_end(self, seen: ObservedWorld) -> None:
        for scope in seen.scopes.values():
            for each in scope.events.values():
                ended = each.ended_ms is not None
                demand("9 every event ends", ended, lambda: f"{each.event.id} has no end")  # noqa: B023

    def _read(self, seen: ObservedWorld, entry: Entry) -> None:
        scope = seen.scopes[entry.scope_id]
        lines = seen.lines.setdefault((entry.scope_id, entry.revision), [])
        lines.append(repr(entry.transition))
        match entry.transition:
            case transitions.Seen(event_id=event_id):
                shown = any(event_id in each.ever_shown for each in self._world.clients)
                demand("seen by", shown, lambda: f"nobody was shown {event_id}")
            case transitions.Approved():
                self._check_approval(scope, entry.transition)
            case transitions.Started():
                self._check_start(scope, scope.events[entry.transition.event_id], entry)
            case transitions.Completed(event_id=event_id):
                self._check_completion(event_id)
            case transitions.Deactivated():
                asked = self._world.last_poll_ms(entry.scope_id, entry.at_ms)
                idle_ms = entry.at_ms - max(asked, scope.activated_ms)
                demand("6 same number, same document", idle_ms >= DAY_MS, lambda: f"{entry}")
            case transitions.DocumentChanged(incarnation=incarnation):
                grown = incarnation == scope.incarnation + 1
                demand("6 same number, same document", grown, lambda: f"{entry}")
            case transitions.InstanceDeleted(name=name):
                taken_away = any(line.startswith("Completed(") for line in lines)
                free = taken_away or not scope.awaits(name)
                demand("9 every event ends", free, lambda: f"{name} left an event behind")
                self._check_leaving(scope, entry, taken_away=taken_away)
            case transitions.RosterDeclared(roster=roster):
                self._check_declaration(scope, roster)
            case _:
                pass
        observed_state.note(scope, entry)
        if isinstance(entry.transition, transitions.Scheduled):
            self._check_birth(scope, scope.events[entry.transition.event_id], entry)

    def _check_declaration(self, scope: ObservedScope, roster: Roster) -> None:
        """Checks that instances with a pending event stay in their domain and are not replaced."""
        for instance in roster.live:
            if not scope.awaits(instance.name):
                continue
            known = scope.instances[instance.name]
            same = known.update_domain == instance.update_domain
            same = same or not scope.awaits_in_domain(instance.name)
            demand("3 one update domain", same, lambda name=instance.name: f"{name} moved")  # type: ignore[misc]
            is_new = instance.name in scope.deleted
            demand("10 isolation", not is_new, lambda name=instance.name: f"{name} is new")  # type: ignore[misc]

    def _check_leaving(self, scope: ObservedScope, entry: Entry, *, taken_away: bool) -> None:
        """Checks that an instance with a terminate notice is deleted only by an event. It may be
        deleted without one only if a caller said so, and the journal must say so too.
        """
        gone = entry.transition
        assert isinstance(gone, transitions.InstanceDeleted)
        said = any(
            isinstance(each.command, Declare) and gone.name in each.command.without_notice
            for each in self._world.requests
            if each.scope_id == scope.id and each.by == entry.by
        )
        demand("2 enough notice", said or not gone.without_notice, lambda: f"{entry}: who said so?")
        is_spot = scope.instances[gone.name].priority == "Spot"
        has_notice = scope.models[gone.name].terminate_notice_ms is not None
        is_due = scope.is_activated and scope.is_scale_set and has_notice and not is_spot
        warned = taken_away or gone.without_notice or not is_due
        demand("2 enough notice", warned, lambda: f"{gone.name} left without its Terminate")

    def _check_birth(self, scope: ObservedScope, seen: ObservedEvent, entry: Entry) -> None:
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

    def _may_be_silent(self, scope: ObservedScope, seen: ObservedEvent) -> bool:
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

    def _least_notice_ms(self, scope: ObservedScope, seen: ObservedEvent) -> int:
        event = seen.event
        model = scope.models[event.resources[0]]
        if event.operation is OperationKind.DELETE:
            return model.terminate_notice_ms or 0
        if event.operation is OperationKind.REIMAGE:
            return model.reimage_notice_ms or 0
        if scope.test and event.operation is None:
            return 0
        return scope.policy.notice_ms.get(event.type, _NOTICE_MS[event.type])

    def _check_start(self, scope: ObservedScope, seen: ObservedEvent, entry: Entry) -> None:
        event, at = seen.event, entry.at_ms
        assert isinstance(entry.transition, transitions.Started)
        happened = entry.transition.cause == "already-happened"
        # It was checked before, at the approval, whether the policy may approve.
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
    def _holders(scope: ObservedScope, now: Instant) -> list[EventId]:
        return [
            each.event.id
            for each in scope.waiting()
            if each.event.type is EventType.TERMINATE
            and each.event.announced
            and not each.approvals
            and each.event.not_before_ms > now
        ]

    def _check_approval(self, scope: ObservedScope, approved: transitions.Approved) -> None:
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

    def _check_completion(self, event_id: EventId) -> None:
        impact = self._world.physical.impacts.get(event_id)
        done = impact is not None and impact.state is Found.DONE
        demand("4 once", done, lambda: f"{event_id} is called completed, and it was not done")

    def _check_approved(self, scope: ObservedScope, at: Instant) -> None:
        """Checks that an approved event has started, unless another event keeps it waiting."""
        holders = self._holders(scope, at)
        for seen in scope.waiting():
            event = seen.event
            if not seen.approvals or any(_in_the_way(event, e.event) for e in scope.under_way()):
                continue
            is_held = event.type is EventType.TERMINATE and bool(holders)
            demand("7 approving is idempotent", is_held, lambda: f"{event.id} still waits")  # noqa: B023
            is_due = event.not_before_ms <= at
            demand("8 terminate barrier", not is_due, lambda: f"{event.id} is held too long")  # noqa: B023

    def _check_barrier(self, scope: ObservedScope) -> None:
        """Checks that all Terminate events start when the last one is approved or due."""
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
        # If only time ends the barrier, a later tick starts the events, so they may still wait.
        due = [e for e in scope.waiting() if e.event.not_before_ms <= now]
        others = [e for e in due if e.event.type is EventType.TERMINATE and not e.approvals]
        demand("8 terminate barrier", not left or bool(others), lambda: f"left behind: {left}")


def _in_the_way(event: Event, started: Event) -> bool:
    both_platform = event.source is started.source is Source.PLATFORM
    another_domain = both_platform and event.update_domain != started.update_domain
    return another_domain or bool(set(event.resources).intersection(started.resources))
