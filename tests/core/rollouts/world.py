"""A fleet without an engine: the pure rules, a clock that the test moves, and drivers that end.

It checks what a rollout promises on every transition, so a test has only to make things happen.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from fairwarning.core.commands import Activate, Command, ReportDone, ReportFailure, Tick
from fairwarning.core.decide import decide
from fairwarning.core.instants import SECOND_MS, Instant, later
from fairwarning.core.lifecycle import apply
from fairwarning.core.limits import Timing
from fairwarning.core.model import (
    Event,
    EventId,
    NodeId,
    Phase,
    Policy,
    Scope,
    ScopeId,
    operator_actor,
)
from fairwarning.core.refusals import Refused
from fairwarning.core.resources import AvailabilitySet, Member, Place, expand
from fairwarning.core.rollouts.advance import Advance, Announce, Withdraw, advance
from fairwarning.core.rollouts.concurrency import concerns
from fairwarning.core.rollouts.model import STOPPED, Rollout, RolloutId, RolloutSpec
from fairwarning.core.rollouts.plan import checked_steps
from fairwarning.core.rollouts.step_length import ASSUMED_DURATION_S
from fairwarning.core.rollouts.windows import is_open
from fairwarning.core.start_rules import next_deadline
from fairwarning.core.transitions import Started

NODE = NodeId("n")
TIMING = Timing(attempts_max=1, lease_ms=10**12, attempt_ms=10**12, idle_ms=10**14)
ROUNDS_MAX = 1_000


def availability_set(
    name: str, instances: int, domains: int, *, policy: Policy | None = None, test: bool = False
) -> Scope:
    members = tuple(Member(name=f"{name}-{n}") for n in range(instances))
    (scope,) = expand(
        AvailabilitySet(
            name=name,
            update_domains=domains,
            members=members,
            policy=policy or Policy(),
            place=Place(test=test),
        )
    )
    return scope


class World:
    def __init__(self, spec: RolloutSpec, scopes: Iterable[Scope], now: Instant) -> None:
        self.now = now
        self.scopes: dict[ScopeId, Scope] = {}
        self.events: dict[EventId, Event] = {}
        self.failing = False
        """Whether impacts that end now end in failure."""
        self.wake: Instant | None = None
        for scope in scopes:
            self.scopes[scope.id] = decide(scope, Activate(), now, timing=TIMING).scope
        self.rollout = Rollout(
            id=RolloutId("20261116-093000-3f9a1c"),
            spec=spec,
            created_ms=now,
            created_by=operator_actor("me"),
            steps=checked_steps(spec, tuple(self.scopes.values()), now),
        )
        self.own: set[EventId] = set()
        """Events of the rollout, those included that an operator's postponement made of them."""
        self.postponed: set[EventId] = set()

    def do(self, scope_id: ScopeId, command: Command) -> None:
        before = self.scopes[scope_id]
        change = decide(before, command, self.now, timing=TIMING, node=NODE)
        self.scopes[scope_id] = change.scope
        scope = before
        for transition in change.transitions:
            # One by one: an event that ends may be forgotten in the same breath.
            scope = apply(scope, transition)
            self.events.update(scope.events)
            if isinstance(transition, Started):
                self._check_start(scope.events[transition.event_id])
        self._check_counts()

    def ask(self) -> Advance:
        seen = {id: self.scopes.get(id) for id in concerns(self.rollout, self.now)}
        return advance(self.rollout, seen, self.now, past=self.events)

    def settle(self, *, crash: bool = False) -> None:
        """Lets the rollout do what it can; with a crash, it dies between the note and the deed."""
        for _ in range(ROUNDS_MAX):
            next = self.ask()
            orders: tuple[Announce | Withdraw, ...] = (*next.withdraw, *next.announce)
            if next.rollout == self.rollout and not orders:
                self.wake = next.wake_ms
                self._check_stopped()
                return
            self.rollout = next.rollout
            if crash:
                self.wake = self.now
                return
            self.own.update(each.command.event_id for each in next.announce)
            for order in orders:
                self.do(order.scope_id, order.command)
        raise AssertionError("the rollout does not come to rest")

    def run_until(self, target: Instant) -> None:
        self.settle()
        while (at := self._next_time()) is not None and at <= target:
            self.now = max(self.now, at)
            self._let_scopes_act()
            self.settle()
        self.now = max(self.now, target)

    def run_to_end(self) -> None:
        for _ in range(ROUNDS_MAX):
            self.settle()
            if self.rollout.ended_ms is not None:
                return
            at = self._next_time()
            assert at is not None, "nothing will ever happen again"
            self.run_until(at)
        raise AssertionError("the rollout does not end")

    def _next_time(self) -> Instant | None:
        times = [self.wake] if self.wake is not None else []
        for scope in self.scopes.values():
            deadline = next_deadline(scope, TIMING)
            times += [] if deadline is None else [deadline]
            times += [_end(event) for event in scope.in_phase(Phase.STARTED)]
        return min(times, default=None)

    def _let_scopes_act(self) -> None:
        for scope_id, scope in list(self.scopes.items()):
            for event in scope.in_phase(Phase.STARTED):
                if _end(event) <= self.now:
                    self._end_impact(scope_id, event)
            self.do(scope_id, Tick())

    def _end_impact(self, scope_id: ScopeId, event: Event) -> None:
        assert event.work is not None
        if self.failing:
            attempt = event.work.attempt
            failure = ReportFailure(event_id=event.id, attempt=attempt, reason="it burns")
            self.do(scope_id, failure)
        else:
            self.do(scope_id, ReportDone(event_id=event.id))

    def _check_start(self, event: Event) -> None:
        if event.id in self.own and event.id not in self.postponed:
            spec = self.rollout.spec
            assert is_open(spec.calendar, self.now), "an impact outside the windows"
            over = later(self.now, max(event.duration_s, 0) * SECOND_MS)
            assert is_open(spec.calendar, over), "an impact reaches beyond its window"

    def _check_counts(self) -> None:
        pending: dict[ScopeId, int] = {}
        for scope in self.scopes.values():
            count = sum(event.id in self.own for event in scope.unfinished)
            pending |= {scope.id: count} if count else {}
        assert all(count == 1 for count in pending.values()), "two update domains at once"
        assert len(pending) <= self.rollout.spec.scopes_at_once, "too many scopes at once"

    def _check_stopped(self) -> None:
        if self.rollout.phase in STOPPED:
            for scope in self.scopes.values():
                announced = {event.id for event in scope.in_phase(Phase.SCHEDULED)}
                assert not announced & self.own, "announced although the rollout has stopped"

    def try_(self, scope_id: ScopeId, command: Command) -> bool:
        try:
            self.do(scope_id, command)
        except Refused:
            return False
        return True

    def change(self, rollout: Rollout) -> None:
        if not self.rollout.is_finished:
            self.rollout = replace(rollout)


def _end(event: Event) -> Instant:
    assert event.started_ms is not None
    seconds = event.duration_s if event.duration_s >= 0 else ASSUMED_DURATION_S.get(event.type, 5)
    return later(event.started_ms, seconds * SECOND_MS)
