"""Every line of a journal reads as a sentence."""

from typing import get_args

import pytest
from msgspec.structs import replace

from fairwarning.core.hooks import HookStage
from fairwarning.core.journal_text import listed, sentence
from fairwarning.core.model import (
    ENGINE,
    Event,
    EventType,
    Instance,
    InstanceName,
    Model,
    NodeId,
    OperationKind,
    Phase,
    Policy,
    Power,
    StartCause,
    instance_actor,
)
from fairwarning.core.transitions import (
    Activated,
    Approved,
    AttemptFailed,
    AttemptLost,
    Cancelled,
    Completed,
    Deactivated,
    DocumentChanged,
    Drained,
    Failed,
    Forgotten,
    HandedOver,
    HookFinished,
    ImpactEnded,
    InstanceDeleted,
    InstancesAdded,
    InstancesUpgraded,
    LeaseRenewed,
    ModelChanged,
    Noted,
    PolicyChanged,
    PowerChanged,
    RosterDeclared,
    Scheduled,
    Seen,
    Started,
    Transition,
    Unknown,
)
from tests.core.builders import E1, E2, T0, names, web
from tests.notifications.entries import NINE_THIRTY, REBOOT

WEB0 = InstanceName("web-0")


def operation(kind: OperationKind, type: EventType, *, announced: bool = True) -> Event:
    return replace(REBOOT, type=type, operation=kind, announced=announced)


SAID: list[tuple[Transition, str]] = [
    (Scheduled(event=REBOOT), "Reboot of web-0, web-1 announced for 2026-11-16 09:30:00 UTC"),
    (
        Scheduled(event=operation(OperationKind.REIMAGE, EventType.REBOOT)),
        "Reimage of web-0, web-1 announced for 2026-11-16 09:30:00 UTC",
    ),
    (
        Scheduled(event=operation(OperationKind.STOP, EventType.POWER, announced=False)),
        "Stop of web-0, web-1 asked for, to run at once",
    ),
    (
        Scheduled(event=operation(OperationKind.DELETE, EventType.TERMINATE)),
        "Terminate of web-0, web-1 announced for 2026-11-16 09:30:00 UTC",
    ),
    (Approved(event_id=E1, by=instance_actor(WEB0), at_ms=T0), "approved by instance web-0"),
    (Approved(event_id=E1, by=ENGINE, at_ms=T0), "approved by engine"),
    (Seen(event_id=E1, name=WEB0, at_ms=T0), "seen for the first time, by web-0"),
    (Drained(event_id=E1, name=WEB0, at_ms=T0), "web-0 is drained"),
    (Started(event_id=E1, cause=StartCause.APPROVED, at_ms=T0), "started (approved)"),
    (Started(event_id=E1, cause=StartCause.DUE, at_ms=T0), "started (its time had come)"),
    (Cancelled(event_id=E1, reason="", at_ms=T0), "cancelled"),
    (
        Cancelled(event_id=E1, reason="postponed", at_ms=T0, replaced_by=E2),
        f"cancelled: postponed; {E2} takes its place",
    ),
    (
        HandedOver(
            event_id=E1, attempt=2, node=NodeId("n1"), lease_until_ms=T0, attempt_until_ms=T0
        ),
        "handed to the driver by n1, attempt 2",
    ),
    (
        LeaseRenewed(event_id=E1, lease_until_ms=NINE_THIRTY),
        "still under way, the driver's lease runs until 2026-11-16 09:30:00 UTC",
    ),
    (
        AttemptLost(event_id=E1, attempt=1, at_ms=T0),
        "attempt 1 was lost; the driver will be asked what became of it",
    ),
    (
        AttemptFailed(event_id=E1, attempt=1, reason="no disk", retry_ms=NINE_THIRTY),
        "attempt 1 failed: no disk; to be tried again at 2026-11-16 09:30:00 UTC",
    ),
    (
        HookFinished(
            event_id=E1,
            attempt=1,
            stage=HookStage.AFTER,
            number=2,
            name="alarm on",
            is_done=False,
            tries=3,
            took_ms=12_000,
            result="exit code 1",
            output="no\nroute\n",
            at_ms=T0,
        ),
        "hook after 2 (alarm on) failed on try 3: exit code 1, after 12 s; output: no route",
    ),
    (
        ImpactEnded(event_id=E1, outcome=Phase.COMPLETED, reason="", at_ms=T0),
        "the driver has completed the impact; the hooks after it follow",
    ),
    (
        ImpactEnded(event_id=E1, outcome=Phase.FAILED, reason="no disk", at_ms=T0),
        "the impact has failed: no disk; the hooks after it follow",
    ),
    (Completed(event_id=E1, at_ms=T0), "completed"),
    (Failed(event_id=E1, reason="no disk", at_ms=T0), "failed: no disk"),
    (Activated(at_ms=T0), "activated: an instance asked for the document"),
    (Unknown(kind="Paused", body="{}"), "Paused (this version cannot read such a line)"),
    (
        Deactivated(at_ms=T0),
        "deactivated: no instance had asked for the document for a long time",
    ),
    (DocumentChanged(incarnation=7), "the document changed to incarnation 7"),
    (Forgotten(event_ids=(E1,), names=()), "1 event and 0 instances forgotten"),
    (InstancesAdded(instances=(Instance(name=WEB0),)), "instance web-0 added"),
    (InstanceDeleted(name=WEB0, at_ms=T0), "instance web-0 deleted"),
    (PowerChanged(name=WEB0, power=Power.STOPPED), "instance web-0 is now stopped"),
    (ModelChanged(model=Model(generation=2)), "the model changed to generation 2"),
    (
        InstancesUpgraded(names=names("a", "b")),
        "instances a, b upgraded to the latest model",
    ),
    (PolicyChanged(policy=Policy()), "the policy changed"),
    (RosterDeclared(roster=web().roster), "declared with 4 instances"),
    (Noted(subject="token:ci", action="created"), "token ci created"),
    (
        Noted(subject="rollout:patch", action="paused", detail="web failed"),
        "rollout patch paused: web failed",
    ),
]


@pytest.mark.parametrize(("transition", "said"), SAID, ids=[said for _, said in SAID])
def test_a_transition_is_said(transition: Transition, said: str) -> None:
    assert sentence(transition) == said


def test_every_kind_of_transition_is_in_the_list_above() -> None:
    assert {type(each) for each, _ in SAID} == set(get_args(Transition))


def test_many_names_are_counted() -> None:
    assert listed([f"n{number}" for number in range(8)]) == "n0, n1, n2, n3, n4 and 3 more"
