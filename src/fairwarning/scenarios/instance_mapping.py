"""Pure functions that list the instances of a scenario, or replace them by others."""

from collections.abc import Mapping

from msgspec.structs import replace

from fairwarning.scenarios.model import (
    Action,
    Expect,
    Operate,
    Scenario,
    Schedule,
    SetFault,
    StartRollout,
)


def instances_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the instances, each once, in the order in which the steps name them."""
    found: dict[str, None] = {}
    for step in scenario.steps:
        found.update(dict.fromkeys(_names(step.action)))
    return tuple(found)


def replace_instances(scenario: Scenario, roles: Mapping[str, str]) -> Scenario:
    """Return the scenario with each instance replaced by the one that `roles` maps it to."""
    steps = tuple(
        replace(step, action=_replace_names(step.action, roles)) for step in scenario.steps
    )
    return replace(scenario, steps=steps)


def _names(action: Action | None) -> tuple[str, ...]:
    match action:
        case Schedule():
            return action.targets
        case Operate():
            return (action.instance,)
        case SetFault():
            return action.instances
        case StartRollout():
            return action.of
        case Expect(approved=str() as name):
            return (name,)
        case _:
            return ()


def _replace_names(action: Action | None, roles: Mapping[str, str]) -> Action | None:
    match action:
        case Schedule():
            return replace(action, targets=_all(action.targets, roles))
        case Operate():
            return replace(action, instance=roles.get(action.instance, action.instance))
        case SetFault():
            return replace(action, instances=_all(action.instances, roles))
        case StartRollout():
            return replace(action, of=_all(action.of, roles))
        case Expect(approved=str() as name):
            return replace(action, approved=roles.get(name, name))
        case _:
            return action


def _all(names: tuple[str, ...], roles: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(roles.get(each, each) for each in names)
