"""Hypothesis drives one scope, aiming at deadlines, and an onlooker keeps the promises in view."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import (
    Activate,
    Approve,
    Cancel,
    Command,
    Declare,
    Operate,
    OperateAll,
    ReportDone,
    ReportFailure,
    ReportPower,
    Schedule,
    Tick,
)
from fairwarning.core.decide import Change, decide
from fairwarning.core.document import render
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.lifecycle import LEGAL, fold
from fairwarning.core.limits import DEFAULT_TIMING
from fairwarning.core.model import (
    EventId,
    EventType,
    Instance,
    InstanceName,
    NodeId,
    OperationKind,
    Phase,
    Power,
    Scope,
    StartCause,
    instance_actor,
)
from fairwarning.core.pending_deletions import takes_away
from fairwarning.core.refusals import Refused
from fairwarning.core.start_rules import next_deadline
from fairwarning.core.transitions import (
    Activated,
    Completed,
    Deactivated,
    InstanceDeleted,
    Scheduled,
    Started,
)
from tests.core.builders import T0, event_id, web, workers

NODE = NodeId("n")


class OneScope(RuleBasedStateMachine):
    scope: Scope

    def __init__(self) -> None:
        super().__init__()
        self.now = T0
        self.ids = 0
        self.documents: dict[tuple[int, int], bytes] = {}
        self.activations = 0

    @initialize(kind=st.sampled_from(["web", "workers"]), activated=st.booleans())
    def begin(self, kind: str, activated: bool) -> None:
        self.scope = web(activated=False) if kind == "web" else workers(4, activated=False)
        if activated:
            self.do(Activate())

    def do(self, command: Command) -> None:
        before = self.scope
        try:
            change = decide(before, command, self.now, node=NODE)
        except Refused:
            return
        assert fold(before, change.transitions) == change.scope
        self.scope = change.scope
        self.activations += sum(isinstance(each, Activated) for each in change.transitions)
        self.starts_are_fair(before, change)
        self.departures_are_fair(before, change, command)

    def starts_are_fair(self, before: Scope, change: Change) -> None:
        for each in change.transitions:
            if not isinstance(each, Started):
                continue
            event = change.scope.events[each.event_id]
            if each.cause is StartCause.DUE:
                assert self.now >= event.not_before_ms
            elif each.cause is StartCause.APPROVED:
                assert event.approvals

    def departures_are_fair(self, before: Scope, change: Change, command: Command) -> None:
        """Promise 2: who has a terminate notice and is watched leaves only after a Terminate
        event, or by the explicit word, which the history has.
        """
        unwarned = command.without_notice if isinstance(command, Declare) else frozenset()
        ended = [e.event_id for e in change.transitions if isinstance(e, Completed)]
        watched = before.is_activated
        for each in change.transitions:
            watched = watched and not isinstance(each, Deactivated)
            if not isinstance(each, InstanceDeleted):
                continue
            has_notice = before.roster.instances[each.name].model.terminate_notice_ms is not None
            events = [change.scope.events.get(id) or before.events[id] for id in ended]
            warned = any(event.type == "Terminate" and each.name in event.resources
                         for event in events)  # fmt: skip
            assert warned or each.without_notice or not (watched and has_notice), each
            assert each.name in unwarned or not each.without_notice, each

    def new_id(self) -> EventId:
        self.ids += 1
        return event_id(self.ids)

    def name(self, pick: int) -> InstanceName:
        names = list(self.scope.roster.instances)
        return names[pick % len(names)] if names else InstanceName("nobody")

    def event(self, pick: int) -> EventId:
        ids = list(self.scope.events)
        return ids[pick % len(ids)] if ids else event_id(999)

    @rule(type=st.sampled_from(EventType), pick=st.integers(0, 3), happened=st.booleans())
    def schedule(self, type: EventType, pick: int, happened: bool) -> None:
        targets = (self.name(pick),)
        self.do(
            Schedule(event_id=self.new_id(), type=type, targets=targets, already_happened=happened)
        )

    @rule(kind=st.sampled_from(OperationKind), pick=st.integers(0, 3))
    def operate(self, kind: OperationKind, pick: int) -> None:
        self.do(Operate(event_id=self.new_id(), kind=kind, instance=self.name(pick)))

    @rule(kind=st.sampled_from(OperationKind), picks=st.lists(st.integers(0, 3), max_size=3))
    def operate_all(self, kind: OperationKind, picks: list[int]) -> None:
        targets = tuple((self.new_id(), self.name(pick)) for pick in picks)
        self.do(OperateAll(kind=kind, targets=targets))
        assert len({id in self.scope.events for id, _ in targets}) <= 1, "some, and not all"

    @rule(pick=st.integers(0, 9), by=st.integers(0, 3))
    def approve(self, pick: int, by: int) -> None:
        self.do(Approve(event_id=self.event(pick), by=instance_actor(self.name(by))))

    @rule(pick=st.integers(0, 9))
    def cancel(self, pick: int) -> None:
        self.do(Cancel(event_id=self.event(pick)))

    @rule(pick=st.integers(0, 9))
    def done(self, pick: int) -> None:
        self.do(ReportDone(event_id=self.event(pick)))

    @rule(pick=st.integers(0, 9), attempt=st.integers(1, 3))
    def failed(self, pick: int, attempt: int) -> None:
        self.do(ReportFailure(event_id=self.event(pick), attempt=attempt, reason="x"))

    @rule(pick=st.integers(0, 3), power=st.sampled_from(Power))
    def power(self, pick: int, power: Power) -> None:
        self.do(ReportPower(instance=self.name(pick), power=power))

    @rule(
        gone=st.sets(st.integers(0, 4)),
        back=st.booleans(),
        moved=st.dictionaries(st.integers(0, 4), st.integers(0, 1), max_size=2),
        force=st.booleans(),
        notice_ms=st.sampled_from([None, 5 * MINUTE_MS, 10 * MINUTE_MS]),
        unwarned=st.sets(st.integers(0, 4), max_size=2),
    )
    def declare(
        self,
        gone: set[int],
        back: bool,
        moved: dict[int, int],
        force: bool,
        notice_ms: int | None,
        unwarned: set[int],
    ) -> None:
        """Some leave, some move, and perhaps those that were deleted return."""
        roster = self.scope.roster
        everyone = list(roster.instances.values() if back else roster.live)
        instances = {
            each.name: replace(
                each, deleted_ms=None, update_domain=moved.get(number, each.update_domain)
            )
            for number, each in enumerate(everyone)
            if number not in gone
        }
        model = roster.model
        if roster.is_numbered:
            model = replace(model, terminate_notice_ms=notice_ms)
        before = self.scope
        command = Declare(
            roster=replace(roster, model=model, instances=instances),
            force=force,
            terminates={each.name: self.new_id() for each in roster.live},
            without_notice=frozenset(
                each.name for number, each in enumerate(everyone) if number in unwarned
            ),
        )
        self.do(command)
        if self.scope is not before:
            self.all_stay_or_leave(before, instances)
            again = decide(self.scope, Declare(roster=self.scope.roster), self.now)
            assert not again.transitions
            same = replace(command.roster, instances={n: self.scope.roster.instances[n]
                                                      for n in instances})  # fmt: skip
            once_more = decide(self.scope, replace(command, roster=same), self.now)
            assert not any(isinstance(each, Scheduled) for each in once_more.transitions)

    def all_stay_or_leave(self, before: Scope, wanted: dict[InstanceName, Instance]) -> None:
        """Who was not wanted is gone, or a Terminate event will take him away."""
        live = [each.name for each in self.scope.roster.live]
        assert set(wanted) <= set(live)
        for name in set(live) - set(wanted):
            assert before.roster.has_live(name)
            assert any(
                event.type is EventType.TERMINATE and name in event.resources
                for event in self.scope.unfinished
            )

    @rule()
    def activate(self) -> None:
        self.do(Activate())

    @rule(by_ms=st.sampled_from([1, 1000, 5 * MINUTE_MS, HOUR_MS, DAY_MS]))
    def time_passes(self, by_ms: int) -> None:
        self.now = Instant(self.now + by_ms)

    @rule(off_by_ms=st.sampled_from([-1, 0, 1]))
    def tick_around_the_deadline(self, off_by_ms: int) -> None:
        deadline = next_deadline(self.scope, DEFAULT_TIMING)
        if deadline is not None and deadline + off_by_ms >= self.now:
            before = self.scope
            self.now = Instant(deadline + off_by_ms)
            self.do(Tick())
            if off_by_ms < 0:
                assert self.scope.unfinished == before.unfinished, "something happened early"

    @invariant()
    def same_incarnation_means_same_document(self) -> None:
        if self.scope.is_activated:
            key = (self.activations, self.scope.incarnation)
            document = render(self.scope, NEWEST)
            assert self.documents.setdefault(key, document) == document

    @invariant()
    def a_tick_leaves_nothing_due(self) -> None:
        change = decide(self.scope, Tick(), self.now, node=NODE)
        assert change.next_deadline_ms is None or change.next_deadline_ms > self.now
        again = decide(change.scope, Tick(), self.now, node=NODE)
        assert not again.transitions

    @invariant()
    def an_event_stays_in_its_update_domain(self) -> None:
        """But for a delete, which goes on wherever its instance is moved."""
        roster = self.scope.roster
        for event in self.scope.unfinished:
            if takes_away(event):
                continue
            live = [roster.instances[name] for name in event.resources if roster.has_live(name)]
            assert {each.update_domain for each in live} <= {event.update_domain}

    @invariant()
    def work_belongs_to_started_events_only(self) -> None:
        for event in self.scope.events.values():
            assert (event.work is not None) == (event.phase is Phase.STARTED)


TestOneScope = OneScope.TestCase
TestOneScope.settings = settings(max_examples=150, stateful_step_count=40)


def test_every_phase_has_a_row_and_finished_ones_are_empty() -> None:
    assert set(LEGAL) == {None, *Phase}
    assert not any(LEGAL[phase] for phase in (Phase.COMPLETED, Phase.CANCELLED, Phase.FAILED))
