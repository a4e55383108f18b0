"""Every limit is itself allowed, and the next value is refused."""

from collections.abc import Callable, Mapping

import pytest

from fairwarning.core import limits, notice, roster
from fairwarning.core.commands import AddInstances, Operate, Schedule
from fairwarning.core.instants import DAY_MS, MINUTE_MS, SECOND_MS, Instant
from fairwarning.core.model import (
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Policy,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import AvailabilitySet, CloudService, Member, ScaleSet, expand
from tests.core.builders import E1, E2, T0, after, names, web, workers

Check = Callable[[], object]


def addresses(count: int) -> Instance:
    return Instance(name=InstanceName("x"), addresses=tuple(f"10.0.0.{n}" for n in range(count)))


def placed(update: int, fault: int) -> Check:
    instance = Instance(name=InstanceName("x"), update_domain=update, fault_domain=fault)
    return lambda: after(web(), AddInstances(instances=(instance,)))


def announced(ahead_ms: int, event_type: EventType = EventType.REBOOT) -> Check:
    return lambda: notice.not_before(
        web().roster, event_type, T0, notice_ms=None, not_before_ms=Instant(T0 + ahead_ms)
    )


def policy(notice_ms: int, *, test: bool = False) -> Check:
    lowered = Policy(notice_ms={EventType.REBOOT: notice_ms})
    return lambda: notice.refuse_lowered_notice(lowered, test=test)


LIMITS: Mapping[str, tuple[Check, Check]] = {
    "description": (
        lambda: limits.refuse_description("a" * 1_024),
        lambda: limits.refuse_description("a" * 1_025),
    ),
    "shortest duration": (lambda: limits.refuse_duration(-1), lambda: limits.refuse_duration(-2)),
    "longest duration": (
        lambda: limits.refuse_duration(604_800),
        lambda: limits.refuse_duration(604_801),
    ),
    "addresses": (
        lambda: roster.refuse_instance(addresses(16)),
        lambda: roster.refuse_instance(addresses(17)),
    ),
    "name": (lambda: roster.refuse_name("a" * 64), lambda: roster.refuse_name("a" * 65)),
    "end of a name": (lambda: roster.refuse_name("a_"), lambda: roster.refuse_name("a-")),
    "begin of a name": (lambda: roster.refuse_name("0"), lambda: roster.refuse_name("_a")),
    "place": (
        lambda: roster.refuse_place("location", "a" * 90),
        lambda: roster.refuse_place("location", "a" * 91),
    ),
    "end of a place": (
        lambda: roster.refuse_place("location", "(a)"),
        lambda: roster.refuse_place("location", "a."),
    ),
    "flexible name": (
        lambda: roster.refuse_flexible_name("a" * 35),
        lambda: roster.refuse_flexible_name("a" * 36),
    ),
    "update domain": (placed(1, 0), placed(2, 0)),
    "fault domain": (placed(0, 1), placed(0, 2)),
    "least fault domain": (placed(0, 0), placed(0, -1)),
    "least update domain": (placed(0, 0), placed(-1, 0)),
    "update domains": (
        lambda: expand(AvailabilitySet(name="x", update_domains=20)),
        lambda: expand(AvailabilitySet(name="x", update_domains=21)),
    ),
    "fault domains": (
        lambda: expand(AvailabilitySet(name="x", fault_domains=5)),
        lambda: expand(AvailabilitySet(name="x", fault_domains=6)),
    ),
    "one address for each": (
        lambda: expand(ScaleSet(name="x", capacity=1, addresses=("10.0.0.1",))),
        lambda: expand(ScaleSet(name="x", capacity=1, addresses=("10.0.0.1", "10.0.0.2"))),
    ),
    "instances of a set": (
        lambda: expand(AvailabilitySet(name="x", members=members(100))),
        lambda: expand(AvailabilitySet(name="x", members=members(101))),
    ),
    "names of new instances": (
        lambda: after(web(), AddInstances(instances=some("x", "y"))),
        lambda: after(web(), AddInstances(instances=some("x", "x"))),
    ),
    "least notice": (announced(15 * MINUTE_MS), announced(15 * MINUTE_MS - SECOND_MS)),
    "least notice of a redeploy": (
        announced(10 * MINUTE_MS, EventType.REDEPLOY),
        announced(10 * MINUTE_MS - SECOND_MS, EventType.REDEPLOY),
    ),
    "least notice of an eviction": (
        announced(30 * SECOND_MS, EventType.PREEMPT),
        announced(29 * SECOND_MS, EventType.PREEMPT),
    ),
    "farthest": (announced(366 * DAY_MS), announced(366 * DAY_MS + SECOND_MS)),
    "notice of a policy": (policy(15 * MINUTE_MS), policy(15 * MINUTE_MS - 1)),
    "farthest notice of a policy": (policy(366 * DAY_MS), policy(366 * DAY_MS + 1)),
    "notice of a test fleet": (policy(0, test=True), policy(-1, test=True)),
    "shortest terminate notice": (
        lambda: notice.parse_terminate_notice_ms("PT5M"),
        lambda: notice.parse_terminate_notice_ms("PT4M59S"),
    ),
    "longest terminate notice": (
        lambda: notice.parse_terminate_notice_ms("PT15M"),
        lambda: notice.parse_terminate_notice_ms("PT15M1S"),
    ),
    "only reimage notice": (
        lambda: notice.parse_reimage_notice_ms("PT15M"),
        lambda: notice.parse_reimage_notice_ms("PT14M"),
    ),
    "kind of a notice": (
        lambda: notice.parse_terminate_notice_ms("5m"),
        lambda: notice.parse_terminate_notice_ms(300),
    ),
    "text": (
        lambda: limits.refuse_text("tag", "ü"),
        lambda: limits.refuse_text("tag", "\ud800"),
    ),
}


def members(count: int) -> tuple[Member, ...]:
    return tuple(Member(name=f"x{n}") for n in range(count))


def some(*given: str) -> tuple[Instance, ...]:
    return tuple(Instance(name=each) for each in names(*given))


@pytest.mark.parametrize(("allowed", "refused"), LIMITS.values(), ids=LIMITS)
def test_every_limit_is_itself_allowed(allowed: Check, refused: Check) -> None:
    allowed()
    with pytest.raises(Refused):
        refused()


def test_a_notice_is_rounded_up_to_the_second_and_never_shortened() -> None:
    now = Instant(T0 + 1)
    chosen = notice.not_before(
        web().roster, EventType.REBOOT, now, notice_ms=None, not_before_ms=None
    )
    assert chosen == T0 + 15 * MINUTE_MS + SECOND_MS


def test_what_is_in_the_past_is_refused_in_a_test_fleet_too() -> None:
    roster = web(test=True).roster
    assert notice.not_before(roster, EventType.REBOOT, T0, notice_ms=0, not_before_ms=None) == T0
    with pytest.raises(Refused, match="in the past"):
        notice.not_before(
            roster, EventType.REBOOT, T0, notice_ms=None, not_before_ms=Instant(T0 - 1_000)
        )


def test_operations_are_counted_until_they_start() -> None:
    restart = Operate(event_id=E1, kind=OperationKind.RESTART, instance=InstanceName("web-0"))
    reboot = Schedule(event_id=E2, type=EventType.REBOOT, targets=names("web-1"))
    one = after(web(), restart, reboot)
    assert limits.pending_operations(one) == 1
    assert limits.is_counted(restart)
    assert not limits.is_counted(reboot)
    limits.refuse_over_limit(web(), one, pending=9, pending_max=10)
    limits.refuse_over_limit(web(), one, pending=99, pending_max=0)
    limits.refuse_over_limit(one, one, pending=99, pending_max=10)
    with pytest.raises(Refused) as refused:
        limits.refuse_over_limit(web(), one, pending=10, pending_max=10)
    assert refused.value.code is Code.TOO_MANY_OPERATIONS


def test_a_terminate_notice_is_the_longest_of_the_instances_and_the_policy() -> None:
    scope = workers(3, notice_ms=7 * MINUTE_MS)
    targets = scope.roster.live
    of = notice.scheduled_notice_ms
    assert of(scope.roster, EventType.TERMINATE, targets) == 7 * MINUTE_MS
    assert of(scope.roster, EventType.REBOOT, targets) == 15 * MINUTE_MS
    assert of(web().roster, EventType.TERMINATE, web().roster.live) == 5 * MINUTE_MS


def test_what_a_declaration_leaves_out_is_what_azure_has() -> None:
    domains = [(each.roster.update_domains, each.roster.fault_domains) for each in (
        *expand(AvailabilitySet(name="a")), *expand(ScaleSet(name="s")),
        *expand(CloudService(name="c")),
    )]  # fmt: skip
    assert domains == [(5, 2), (5, 5), (5, 2)]
    timing = limits.DEFAULT_TIMING
    assert (timing.attempts_max, timing.handovers_max) == (5, 100)
    assert (timing.lease_ms, timing.backoff_ms, timing.backoff_ms_max) == (30_000, 1_000, 60_000)
    assert (timing.idle_ms, timing.idle_grace_ms) == (86_400_000, 900_000)
    assert (timing.retention_ms, timing.attempt_ms) == (86_400_000, 1_800_000)
