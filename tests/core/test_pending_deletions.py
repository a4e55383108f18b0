"""Which events take an instance away, and which instances stay."""

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import Operate, Schedule
from fairwarning.core.model import EventType, InstanceName, OperationKind, Scope
from fairwarning.core.pending_deletions import (
    is_due_terminate,
    leavers,
    pending_terminate,
    stayers,
    takes_away,
)
from tests.core.builders import E1, after, names, workers

FIRST = InstanceName("workers_0")


def asked(kind: OperationKind, *, activated: bool = True) -> Scope:
    return after(workers(activated=activated), Operate(event_id=E1, kind=kind, instance=FIRST))


@pytest.mark.parametrize(
    ("kind", "goes"),
    [(OperationKind.DELETE, True), (OperationKind.RESTART, False), (OperationKind.REDEPLOY, False),
     (OperationKind.REIMAGE, False)],
)  # fmt: skip
def test_only_a_delete_takes_its_instance_away(kind: OperationKind, goes: bool) -> None:
    scope = asked(kind)
    assert takes_away(scope.events[E1]) is goes
    assert leavers(scope) == ({FIRST} if goes else frozenset())
    assert (FIRST in stayers(scope)) is not goes
    assert (pending_terminate(scope, FIRST) is not None) is goes
    assert pending_terminate(scope, InstanceName("workers_1")) is None


def test_a_terminate_event_of_the_platform_is_no_delete_and_its_instance_does_not_stay() -> None:
    scope = workers()
    rehearsed = replace(scope, roster=replace(scope.roster, test=True))
    terminate = Schedule(event_id=E1, type=EventType.TERMINATE, targets=names("workers_0"))
    scope = after(rehearsed, terminate)
    assert not takes_away(scope.events[E1])
    assert leavers(scope) == frozenset()
    assert stayers(scope) == {"workers_1", "workers_2"}


def test_who_is_due_a_notice_stays_so_once_it_was_announced() -> None:
    scope = asked(OperationKind.DELETE)
    instance = scope.roster.instances[FIRST]
    without = replace(instance, model=replace(instance.model, terminate_notice_ms=None))
    assert is_due_terminate(scope, instance)
    assert is_due_terminate(scope, without)
    assert not is_due_terminate(workers(), without)
    assert not is_due_terminate(workers(activated=False), instance)
