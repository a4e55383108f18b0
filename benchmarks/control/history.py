"""Makes a long history of events of a large fleet, half of it of one busy scope."""

import random
from collections.abc import Sequence

from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.model import (
    Approval,
    Event,
    EventId,
    EventType,
    InstanceName,
    Phase,
    Scope,
    ScopeId,
    Source,
    StartCause,
    instance_actor,
)
from fairwarning.core.resources import AvailabilitySet, Member, expand

SCOPES = 1_000
INSTANCES_EACH = 5
BEGINNING = Instant(1_750_000_000_000)

Past = tuple[ScopeId, Event]

_TYPES = {
    EventType.FREEZE: 50,
    EventType.REBOOT: 30,
    EventType.REDEPLOY: 15,
    EventType.TERMINATE: 5,
    EventType.PREEMPT: 0.05,
}
_PHASES = {
    Phase.COMPLETED: 85,
    Phase.CANCELLED: 14.5,
    Phase.FAILED: 0.1,
    Phase.SCHEDULED: 0.3,
    Phase.STARTED: 0.1,
}
_FINISHED = {Phase.COMPLETED, Phase.CANCELLED, Phase.FAILED}


def fleet() -> list[Scope]:
    return [
        scope
        for number in range(SCOPES)
        for scope in expand(
            AvailabilitySet(
                name=f"web{number}",
                update_domains=INSTANCES_EACH,
                members=tuple(Member(name=f"web{number}-{n}") for n in range(INSTANCES_EACH)),
            )
        )
    ]


def events(scopes: Sequence[Scope], number: int) -> list[Past]:
    """Yields the events, newest last; every other one is of the first scope."""
    dice = random.Random(1)
    past = []
    for each in range(number):
        scope = scopes[0] if each % 2 else dice.choice(scopes)
        at = Instant(BEGINNING + each * 1_000 + dice.randrange(3_000))
        past.append((scope.id, _event(dice, scope, at)))
    return past


def _event(dice: random.Random, scope: Scope, at: Instant) -> Event:
    (type,) = dice.choices(list(_TYPES), list(_TYPES.values()))
    (phase,) = dice.choices(list(_PHASES), list(_PHASES.values()))
    names = list(scope.roster.instances)
    # The last one of each scope is seldom hit.
    last = len(names) if dice.random() < 0.001 else len(names) - 1
    resources = tuple(names[: dice.randint(1, last)])
    start = None if phase in {Phase.SCHEDULED, Phase.CANCELLED} else _after(at)
    return Event(
        id=EventId(f"{dice.getrandbits(32):08X}-0000-4000-8000-{dice.getrandbits(48):012X}"),
        type=type,
        source=Source.USER if type is EventType.TERMINATE else dice.choice(list(Source)),
        phase=phase,
        resources=resources,
        update_domain=0,
        created_ms=at,
        not_before_ms=_after(at),
        description="Virtual machine is being maintained by the operator of its host",
        duration_s=30,
        approvals=_approvals(resources[0], at) if start else (),
        start_cause=StartCause.APPROVED if start else None,
        started_ms=start,
        ended_ms=_after(at) if phase in _FINISHED else None,
    )


def _after(at: Instant) -> Instant:
    return Instant(at + 15 * MINUTE_MS)


def _approvals(name: InstanceName, at: Instant) -> tuple[Approval, ...]:
    return (Approval(by=instance_actor(name), at_ms=_after(at)),)
