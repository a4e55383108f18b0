"""From the scopes of a rollout to its steps, before anything has happened."""

from collections.abc import Iterable

from fairwarning.core.model import InstanceName, Scope
from fairwarning.core.rollouts.model import RolloutStep


def draw_up(scopes: Iterable[Scope]) -> tuple[RolloutStep, ...]:
    """In the order of the scopes; one without live instances has no step."""
    return tuple(step for scope in scopes for step in _steps_of(scope))


def _steps_of(scope: Scope) -> list[RolloutStep]:
    domains: dict[int, list[InstanceName]] = {}
    for instance in scope.roster.live:
        domains.setdefault(instance.update_domain, []).append(instance.name)
    return [
        RolloutStep(scope_id=scope.id, update_domain=domain, instances=tuple(names))
        for domain, names in sorted(domains.items())
    ]
