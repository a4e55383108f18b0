"""Who plays: the instances of a scenario, and others in their place. Pure."""

from collections.abc import Mapping

from msgspec.structs import replace

from fairwarning.scenarios.model import (
    Deed,
    Expect,
    Operate,
    Scenario,
    Schedule,
    SetFault,
    StartRollout,
)


def cast_of(scenario: Scenario) -> tuple[str, ...]:
    """The instances, each once, in the order in which the story needs them."""
    found: dict[str, None] = {}
    for step in scenario.steps:
        found.update(dict.fromkeys(_names(step.deed)))
    return tuple(found)


def recast(scenario: Scenario, roles: Mapping[str, str]) -> Scenario:
    """`roles` says who plays whom."""
    steps = tuple(replace(step, deed=_played(step.deed, roles)) for step in scenario.steps)
    return replace(scenario, steps=steps)


def _names(deed: Deed | None) -> tuple[str, ...]:
    match deed:
        case Schedule():
            return deed.targets
        case Operate():
            return (deed.instance,)
        case SetFault():
            return deed.instances
        case StartRollout():
            return deed.of
        case Expect(approved=str() as name):
            return (name,)
        case _:
            return ()


def _played(deed: Deed | None, roles: Mapping[str, str]) -> Deed | None:
    match deed:
        case Schedule():
            return replace(deed, targets=_all(deed.targets, roles))
        case Operate():
            return replace(deed, instance=roles.get(deed.instance, deed.instance))
        case SetFault():
            return replace(deed, instances=_all(deed.instances, roles))
        case StartRollout():
            return replace(deed, of=_all(deed.of, roles))
        case Expect(approved=str() as name):
            return replace(deed, approved=roles.get(name, name))
        case _:
            return deed


def _all(names: tuple[str, ...], roles: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(roles.get(each, each) for each in names)
