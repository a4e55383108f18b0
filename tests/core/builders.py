"""Short ways to a scope and to things that happen to it."""

from fairwarning.core.commands import Activate, Command
from fairwarning.core.decide import decide
from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.model import EventId, InstanceName, Policy, Scope
from fairwarning.core.resources import AvailabilitySet, Member, Place, ScaleSet, expand

T0 = Instant(1_600_000_000_000)


def event_id(number: int) -> EventId:
    return EventId(f"00000000-0000-4000-8000-{number:012X}")


E1, E2, E3 = event_id(1), event_id(2), event_id(3)


def names(*texts: str) -> tuple[InstanceName, ...]:
    return tuple(InstanceName(text) for text in texts)


def web(*, test: bool = False, policy: Policy | None = None, activated: bool = True) -> Scope:
    """Four instances in two update domains: web-0 and web-2, web-1 and web-3."""
    (scope,) = expand(
        AvailabilitySet(
            name="web",
            update_domains=2,
            members=tuple(Member(name=f"web-{n}", addresses=(f"10.0.0.{n}",)) for n in range(4)),
            policy=policy or Policy(),
            place=Place(test=test),
        )
    )
    return after(scope, Activate()) if activated else scope


def workers(capacity: int = 3, *, activated: bool = True, notice_ms: int = 5 * MINUTE_MS) -> Scope:
    scope, *_ = expand(ScaleSet(name="workers", capacity=capacity, terminate_notice_ms=notice_ms))
    return after(scope, Activate()) if activated else scope


def after(scope: Scope, *commands: Command, at: Instant = T0) -> Scope:
    for command in commands:
        scope = decide(scope, command, at).scope
    return scope
