"""Bad input has one defined answer each, and changes nothing."""

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import (
    AddInstances,
    Approve,
    Cancel,
    ChangeModel,
    ChangePolicy,
    Command,
    Operate,
    OperateAll,
    Postpone,
    ReportDone,
    Schedule,
    UpgradeInstances,
)
from fairwarning.core.decide import decide
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.limits import (
    DESCRIPTION_CHARS_MAX,
    EVENT_DURATION_S_MAX,
    NOT_BEFORE_AHEAD_MS_MAX,
    SCOPE_EVENTS_MAX,
)
from fairwarning.core.model import (
    ANNOUNCED_TYPES,
    EventId,
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Phase,
    Policy,
    Priority,
    Scope,
    instance_actor,
    operator_actor,
)
from fairwarning.core.notice import parse_terminate_notice_ms
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import ScaleSet, expand
from tests.core.builders import E1, E2, T0, after, event_id, names, web, workers

FREEZE = Schedule(event_id=E1, type=EventType.FREEZE, targets=names("web-0"))
DELETE = Operate(event_id=E1, kind=OperationKind.DELETE, instance=InstanceName("workers_0"))
RESTART = Operate(event_id=E1, kind=OperationKind.RESTART, instance=InstanceName("workers_0"))
ME = operator_actor("me")


def schedule(
    *targets: str, type: EventType = EventType.FREEZE, id: EventId = E2, **more: object
) -> Schedule:
    return Schedule(event_id=id, type=type, targets=names(*targets), **more)  # type: ignore[arg-type]


def ended() -> Scope:
    happened = schedule("web-0", type=EventType.REBOOT, id=E1, already_happened=True)
    return after(web(), happened, ReportDone(event_id=E1))


def deleted(capacity: int = 3) -> Scope:
    scope = after(workers(capacity), DELETE, Approve(event_id=E1, by=ME))
    return after(scope, ReportDone(event_id=E1))


def full_of_events(free: int = 0) -> Scope:
    """A scope that holds as many events as it may, but for `free` of them."""
    scope = ended()
    numbers = (event_id(each) for each in range(100, 100 + SCOPE_EVENTS_MAX - free))
    return replace(scope, events={each: replace(scope.events[E1], id=each) for each in numbers})


CASES: list[tuple[str, Scope, Command, Code]] = [
    ("unknown instance", web(), schedule("stranger"), Code.UNKNOWN_INSTANCE),
    ("two update domains", web(), schedule("web-0", "web-1"), Code.SPANS_UPDATE_DOMAINS),
    ("notice below the minimum", web(), schedule("web-0", notice_ms=1), Code.NOTICE_TOO_SHORT),
    (
        "one ms below the minimum",
        web(),
        schedule("web-0", not_before_ms=Instant(T0 + 15 * MINUTE_MS - 1000)),
        Code.NOTICE_TOO_SHORT,
    ),
    (
        "too far ahead",
        web(),
        schedule("web-0", notice_ms=400 * DAY_MS),
        Code.NOT_BEFORE_TOO_FAR,
    ),
    ("deleted instance", deleted(), schedule("workers_0"), Code.INSTANCE_DELETED),
    ("approving a finished event", ended(), Approve(event_id=E1, by=ME), Code.EVENT_FINISHED),
    ("cancelling a finished event", ended(), Cancel(event_id=E1), Code.EVENT_FINISHED),
    (
        "cancelling a started event",
        after(web(), schedule("web-0", id=E1, already_happened=True)),
        Cancel(event_id=E1),
        Code.EVENT_STARTED,
    ),
    (
        "same type pending",
        after(web(), FREEZE),
        schedule("web-2", "web-0"),
        Code.ALREADY_PENDING,
    ),
    (
        "same operation pending",
        after(workers(), DELETE),
        Operate(event_id=E2, kind=OperationKind.DELETE, instance=InstanceName("workers_0")),
        Code.ALREADY_PENDING,
    ),
    ("used id", after(web(), FREEZE), schedule("web-1", id=E1), Code.EVENT_ID_USED),
    ("id of a finished event", ended(), schedule("web-1", id=E1), Code.EVENT_ID_USED),
    ("no GUID", web(), schedule("web-0", id=EventId("nonsense")), Code.EVENT_ID_INVALID),
    ("no target", web(), schedule(), Code.NO_TARGET),
    ("a target twice", web(), schedule("web-0", "web-0"), Code.NO_TARGET),
    ("unknown event", web(), Approve(event_id=E1, by=ME), Code.UNKNOWN_EVENT),
    (
        "a stranger approves",
        after(web(), FREEZE),
        Approve(event_id=E1, by=instance_actor(InstanceName("workers_0"))),
        Code.NOT_IN_SCOPE,
    ),
    (
        "a deleted instance approves",
        after(deleted(), schedule("workers_1", id=E2)),
        Approve(event_id=E2, by=instance_actor(InstanceName("workers_0"))),
        Code.NOT_IN_SCOPE,
    ),
    ("preempt of a regular", web(), schedule("web-0", type=EventType.PREEMPT), Code.NOT_SPOT),
    (
        "evict of a regular",
        web(),
        Operate(event_id=E1, kind=OperationKind.EVICT, instance=InstanceName("web-0")),
        Code.NOT_SPOT,
    ),
    (
        "terminate without delete",
        workers(),
        schedule("workers_0", type=EventType.TERMINATE),
        Code.TERMINATE_BY_DELETE_ONLY,
    ),
    (
        "terminate notice too short",
        workers(),
        ChangeModel(terminate_notice_ms=5 * MINUTE_MS - 1),
        Code.TERMINATE_NOTICE_INVALID,
    ),
    (
        "terminate notice too long",
        workers(),
        ChangeModel(terminate_notice_ms=15 * MINUTE_MS + 1),
        Code.TERMINATE_NOTICE_INVALID,
    ),
    (
        "model of a set without one",
        web(),
        ChangeModel(terminate_notice_ms=5 * MINUTE_MS),
        Code.NOT_A_SCALE_SET,
    ),
    (
        "reimage notice of another length",
        workers(),
        ChangeModel(terminate_notice_ms=None, reimage_notice_ms=14 * MINUTE_MS),
        Code.REIMAGE_NOTICE_INVALID,
    ),
    (
        "schedule of a change of power",
        web(test=True),
        schedule("web-0", type=EventType.POWER),
        Code.NOT_SCHEDULABLE,
    ),
    (
        "notice of a change of power",
        web(test=True),
        ChangePolicy(policy=Policy(notice_ms={EventType.POWER: HOUR_MS})),
        Code.NOT_SCHEDULABLE,
    ),
    (
        "operation on nobody",
        web(),
        OperateAll(kind=OperationKind.STOP, targets=()),
        Code.NO_TARGET,
    ),
    (
        "long description",
        web(),
        schedule("web-0", description="x" * (DESCRIPTION_CHARS_MAX + 1)),
        Code.DESCRIPTION_TOO_LONG,
    ),
    ("negative duration", web(), schedule("web-0", duration_s=-2), Code.DURATION_INVALID),
    (
        "duration of more than a week",
        web(),
        schedule("web-0", duration_s=EVENT_DURATION_S_MAX + 1),
        Code.DURATION_INVALID,
    ),
    (
        "rehearsed for more than a week",
        web(),
        schedule("web-0", lasts_s=EVENT_DURATION_S_MAX + 1),
        Code.DURATION_INVALID,
    ),
    ("too many events", full_of_events(), schedule("web-0"), Code.TOO_MANY_EVENTS),
    (
        "notice raised beyond every NotBefore",
        web(),
        ChangePolicy(policy=Policy(notice_ms={EventType.REBOOT: 367 * DAY_MS})),
        Code.NOTICE_NOT_LOWERABLE,
    ),
    (
        "notice lowered",
        web(),
        ChangePolicy(policy=Policy(notice_ms={EventType.REBOOT: MINUTE_MS})),
        Code.NOTICE_NOT_LOWERABLE,
    ),
    (
        "negative notice in a test fleet",
        web(test=True),
        ChangePolicy(policy=Policy(notice_ms={EventType.REBOOT: -1})),
        Code.NOTICE_NOT_LOWERABLE,
    ),
    (
        "postponing a delete",
        after(workers(), DELETE),
        Postpone(event_id=E1, new_event_id=E2, not_before_ms=Instant(T0 + HOUR_MS)),
        Code.NOT_POSTPONABLE,
    ),
    (
        "postponing what its owner asked for",
        after(workers(), RESTART),
        Postpone(event_id=E1, new_event_id=E2, not_before_ms=Instant(T0 + HOUR_MS)),
        Code.NOT_POSTPONABLE,
    ),
    (
        "instance exists",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("web-0")),)),
        Code.INSTANCE_EXISTS,
    ),
    (
        "number used up",
        workers(),
        AddInstances(instances=(Instance(name=InstanceName("workers_1")),)),
        Code.INSTANCE_EXISTS,
    ),
    (
        "bad name",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("no/slash")),)),
        Code.NAME_INVALID,
    ),
    (
        "bad address",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("x"), addresses=("10.0.0.300",)),)),
        Code.ADDRESS_INVALID,
    ),
    (
        "full",
        workers(100),
        AddInstances(instances=(Instance(name=InstanceName("workers_100")),)),
        Code.SCOPE_FULL,
    ),
    (
        "no such update domain",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("x"), update_domain=7),)),
        Code.FLEET_INVALID,
    ),
    (
        "no name for a numbered set",
        workers(),
        AddInstances(instances=(Instance(name=InstanceName("other_9")),)),
        Code.NAME_INVALID,
    ),
    (
        "spot in a set with a terminate notice",
        workers(),
        AddInstances(instances=(Instance(name=InstanceName("workers_3"), priority=Priority.SPOT),)),
        Code.TERMINATE_NOT_FOR_SPOT,
    ),
    (
        "mapped address",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("x"), addresses=("::ffff:a00:5",)),)),
        Code.ADDRESS_INVALID,
    ),
    (
        "zoned address",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("x"), addresses=("fe80::1%e",)),)),
        Code.ADDRESS_INVALID,
    ),
    (
        "zoned address that is unique without its zone",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("x"), addresses=("fd00::1%e",)),)),
        Code.ADDRESS_INVALID,
    ),
    (
        "terminate notice for a set with spot instances",
        expand(ScaleSet(name="cheap", capacity=1, priority=Priority.SPOT))[0],
        ChangeModel(terminate_notice_ms=5 * MINUTE_MS),
        Code.TERMINATE_NOT_FOR_SPOT,
    ),
    (
        "link-local address",
        web(),
        AddInstances(instances=(Instance(name=InstanceName("x"), addresses=("fe80::1",)),)),
        Code.ADDRESS_INVALID,
    ),
    ("no text", web(), schedule("web-0", description="a\ud800"), Code.TEXT_INVALID),
    ("upgrade of a stranger", workers(), UpgradeInstances(names=names("x")), Code.UNKNOWN_INSTANCE),
]


@pytest.mark.parametrize(("what", "scope", "command", "code"), CASES, ids=[c[0] for c in CASES])
def test_bad_input_gets_its_answer(what: str, scope: Scope, command: Command, code: Code) -> None:
    with pytest.raises(Refused) as refused:
        decide(scope, command, T0)
    assert refused.value.code is code
    problem, remedy = refused.value.message.split("; ", 1)
    assert problem
    assert remedy


@pytest.mark.parametrize(
    ("scope", "command"),
    [
        (web(), schedule("web-0", description="x" * DESCRIPTION_CHARS_MAX)),
        (web(), schedule("web-0", duration_s=EVENT_DURATION_S_MAX, lasts_s=EVENT_DURATION_S_MAX)),
        (web(), schedule("web-0", duration_s=-1)),
        (web(), schedule("web-0", notice_ms=15 * MINUTE_MS)),
        (web(), schedule("web-0", notice_ms=NOT_BEFORE_AHEAD_MS_MAX)),
        (full_of_events(free=1), schedule("web-0")),
        (
            web(),
            ChangePolicy(policy=Policy(notice_ms={EventType.REBOOT: NOT_BEFORE_AHEAD_MS_MAX})),
        ),
        (workers(99), AddInstances(instances=(Instance(name=InstanceName("workers_99")),))),
        (deleted(100), AddInstances(instances=(Instance(name=InstanceName("workers_100")),))),
        (
            web(),
            AddInstances(instances=(Instance(name=InstanceName("x"), addresses=("169.254.7.7",)),)),
        ),
    ],
)
def test_what_is_just_within_a_limit_is_done(scope: Scope, command: Command) -> None:
    assert decide(scope, command, T0).transitions


def test_a_postponed_event_is_the_same_but_for_its_time_and_who_is_gone() -> None:
    freeze = schedule(
        "web-0", "web-2", id=E1, description="disk", duration_s=7, lasts_s=9, notice_ms=HOUR_MS
    )
    delete = Operate(event_id=event_id(7), kind=OperationKind.DELETE, instance=names("web-2")[0])
    scope = after(web(), freeze, delete, ReportDone(event_id=event_id(7)))
    later = Instant(T0 + 2 * HOUR_MS)
    scope = after(scope, Postpone(event_id=E1, new_event_id=E2, not_before_ms=later))
    before, event = scope.events[E1], scope.events[E2]
    assert before.replaced_by == E2
    assert event.resources == names("web-0")
    assert event == replace(
        before,
        id=E2,
        resources=event.resources,
        not_before_ms=later,
        phase=Phase.SCHEDULED,
        ended_ms=None,
        outcome="",
        replaced_by=None,
    )


def test_a_cancelled_event_says_why() -> None:
    scope = after(web(), FREEZE)
    for reason, outcome in (("not today", "not today"), ("", "cancelled by the operator")):
        cancelled = after(scope, Cancel(event_id=E1, reason=reason))
        assert cancelled.events[E1].outcome == outcome


@pytest.mark.parametrize(
    "text", ["PT4M59S", "PT15M1S", "P1D", "5", "", "PT", "P", "pt5m", "PT5.5M", "-PT5M", "4m"]
)
def test_a_terminate_timeout_is_5_to_15_minutes_of_iso_8601(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_terminate_notice_ms(text)
    assert refused.value.code is Code.TERMINATE_NOTICE_INVALID
    assert refused.value.message.endswith("; choose from PT5M to PT15M")


@pytest.mark.parametrize(
    ("text", "minutes"), [("PT5M", 5), ("PT15M", 15), ("PT0H7M", 7), ("PT300S", 5)]
)
def test_a_good_terminate_timeout_is_read(text: str, minutes: int) -> None:
    assert parse_terminate_notice_ms(text) == minutes * MINUTE_MS


def test_a_test_fleet_may_rehearse_what_a_real_one_may_not() -> None:
    scope = web(test=True)
    for event_type in ANNOUNCED_TYPES:
        command = schedule("web-0", type=event_type, notice_ms=0)
        assert decide(scope, command, T0).transitions


def test_a_raised_minimum_holds_for_deletes_too() -> None:
    policy = Policy(notice_ms={EventType.TERMINATE: HOUR_MS})
    scope = after(workers(), ChangePolicy(policy=policy), DELETE)
    assert scope.events[E1].not_before_ms >= T0 + HOUR_MS
