"""This module adds and upgrades instances, changes the rules of a scope, and checks rosters."""

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec.structs import replace

from fairwarning.core import limits, notice, transitions
from fairwarning.core.commands import ChangeModel
from fairwarning.core.lifecycle import Draft, number_of
from fairwarning.core.model import (
    Instance,
    InstanceName,
    Model,
    Policy,
    Priority,
    Roster,
    Scope,
    ScopeId,
    ScopeKind,
)
from fairwarning.core.new_events import find_instance
from fairwarning.core.refusals import Code, Refused

ADDRESSES_CACHED_MAX = 4_096
"""A plan checks each address several times, soon after one another."""
PLACES_CACHED_MAX = 256  # Most resources of a fleet are in a few places.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
_PLACE = re.compile(r"[A-Za-z0-9_.()-]{0,89}[A-Za-z0-9_()-]")


def add(draft: Draft, instances: tuple[Instance, ...]) -> None:
    """Add instances, which get the newest model. Raises Refused if one breaks a rule."""
    roster = draft.scope.roster
    instances = tuple(replace(each, model=roster.model, deleted_ms=None) for each in instances)
    for instance in instances:
        refuse_instance(instance)
        _refuse_domains(roster, instance)
        _refuse_taken_name(draft.scope, instance.name)
    if roster.model.terminate_notice_ms is not None:
        refuse_terminate_on_spot(instances)
    room = _room(roster.kind)
    if len(roster.live) + len(instances) > room:
        raise Refused(
            Code.SCOPE_FULL,
            f"{draft.scope.id} holds at most {room} instances and has {len(roster.live)}; put the "
            "others into another scope",
        )
    if len({each.name for each in instances}) != len(instances):
        raise Refused(Code.INSTANCE_EXISTS, "two of the new instances share a name; rename one")
    if instances:
        draft.add(transitions.InstancesAdded(instances=instances))


def _refuse_domains(roster: Roster, instance: Instance) -> None:
    inside = (
        0 <= instance.update_domain < roster.update_domains
        and 0 <= instance.fault_domain < roster.fault_domains
    )
    if not inside:
        raise Refused(
            Code.FLEET_INVALID,
            f"instance {instance.name!r} is placed in update domain {instance.update_domain} and "
            f"fault domain {instance.fault_domain}; {roster.resource!r} has "
            f"{roster.update_domains} and {roster.fault_domains}, counted from 0",
        )


def _refuse_taken_name(scope: Scope, name: InstanceName) -> None:
    roster = scope.roster
    number = number_of(roster, name)
    _refuse_unnumbered(roster, name)
    if name in roster.instances or (number is not None and number < roster.next_number):
        raise Refused(
            Code.INSTANCE_EXISTS,
            f"scope {scope.id} has or had an instance {name!r}; choose another name",
        )


def _refuse_unnumbered(roster: Roster, name: InstanceName) -> None:
    if roster.is_numbered and name != f"{roster.resource}_{number_of(roster, name)}":
        raise Refused(
            Code.NAME_INVALID,
            f"{name!r} is no name for an instance of a uniform scale set; call it "
            f"'{roster.resource}_{roster.next_number}'",
        )


def change_model(draft: Draft, command: ChangeModel) -> None:
    roster = draft.scope.roster
    _refuse_model(draft.scope.id, roster.kind)
    model = next_model(
        roster.model,
        terminate_notice_ms=command.terminate_notice_ms,
        reimage_notice_ms=command.reimage_notice_ms,
        profile=command.profile,
    )
    _refuse_notices(model, roster.instances.values())
    if model != roster.model:
        draft.add(transitions.ModelChanged(model=model))


def next_model(
    model: Model, *, terminate_notice_ms: int | None, reimage_notice_ms: int | None, profile: str
) -> Model:
    """Return the model with these values. If one of them is new, the generation is one higher."""
    said = replace(
        model,
        terminate_notice_ms=terminate_notice_ms,
        reimage_notice_ms=reimage_notice_ms,
        profile=profile,
    )
    return model if said == model else replace(said, generation=model.generation + 1)


def _refuse_notices(model: Model, instances: Iterable[Instance]) -> None:
    if model.terminate_notice_ms is not None:
        notice.refuse_terminate_notice(model.terminate_notice_ms)
        refuse_terminate_on_spot(instances)
    if model.reimage_notice_ms is not None:
        notice.refuse_reimage_notice(model.reimage_notice_ms)


def _refuse_model(scope_id: ScopeId, kind: ScopeKind) -> None:
    if kind is not ScopeKind.SCALE_SET:
        raise Refused(
            Code.NOT_A_SCALE_SET, f"{scope_id} is a {kind}; only a scale set has a model to change"
        )


def upgrade(draft: Draft, names: tuple[InstanceName, ...]) -> None:
    roster = draft.scope.roster
    instances = [find_instance(draft.scope, name) for name in names]
    behind = tuple(each.name for each in instances if not roster.latest_model_applied(each))
    if behind:
        draft.add(upgraded(roster, behind))


def upgraded(roster: Roster, names: tuple[InstanceName, ...]) -> transitions.InstancesUpgraded:
    """Return the upgrade to the latest model. It names instances that lose a terminate notice."""
    has_none = roster.model.terminate_notice_ms is None
    models = {name: roster.instances[name].model for name in names}
    return transitions.InstancesUpgraded(
        names=names,
        lose_notice=tuple(
            name
            for name, model in models.items()
            if has_none and model.terminate_notice_ms is not None
        ),
    )


def change_policy(draft: Draft, policy: Policy) -> None:
    notice.refuse_lowered_notice(policy, test=draft.scope.roster.test)
    if policy != draft.scope.roster.policy:
        draft.add(transitions.PolicyChanged(policy=policy))


def refuse_scope(scope: Scope) -> None:
    """Raise Refused if a scope that is declared for the first time breaks a rule."""
    refuse_roster(scope.id, scope.roster)


def refuse_roster(scope_id: ScopeId, roster: Roster) -> None:
    """Raise Refused if the roster of a new or an existing scope breaks a rule."""
    refuse_name(roster.resource)
    if roster.kind is ScopeKind.SCALE_SET and not roster.is_numbered:
        refuse_flexible_name(roster.resource)
    refuse_place("subscription", roster.subscription)
    refuse_place("resource group", roster.resource_group)
    refuse_place("location", roster.location)
    notice.refuse_lowered_notice(roster.policy, test=roster.test)
    live = roster.live
    if (roster.model.terminate_notice_ms, roster.model.reimage_notice_ms) != (None, None):
        _refuse_model(scope_id, roster.kind)
        _refuse_notices(roster.model, live)
    room = _room(roster.kind)
    if len(live) > room:
        raise Refused(
            Code.SCOPE_FULL,
            f"{scope_id} has {len(live)} instances; a {roster.kind} holds at most {room}",
        )
    for instance in live:
        refuse_instance(instance)
        _refuse_domains(roster, instance)
        _refuse_unnumbered(roster, instance.name)


def _room(kind: ScopeKind) -> int:
    return 1 if kind is ScopeKind.VM else limits.SCOPE_INSTANCES_MAX


@lru_cache(PLACES_CACHED_MAX)
def refuse_place(what: str, text: str) -> None:
    """Raise Refused if a part of a scope's id (`what`) has a forbidden character, like a slash."""
    if not _PLACE.fullmatch(text):
        raise Refused(
            Code.FLEET_INVALID,
            f"{text[:100]!r} is no {what}; use 1 to 90 letters, digits, '.', '-', '_', '(' and "
            "')', not ending in '.'",
        )


def refuse_terminate_on_spot(instances: Iterable[Instance]) -> None:
    if any(each.priority is Priority.SPOT for each in instances):
        raise Refused(
            Code.TERMINATE_NOT_FOR_SPOT,
            "Spot instances get no Terminate events; leave the terminate notice out, or make the "
            "scale set Regular",
        )


def refuse_instance(instance: Instance) -> None:
    refuse_name(instance.name)
    if len(instance.addresses) > limits.INSTANCE_ADDRESSES_MAX:
        raise Refused(
            Code.ADDRESS_INVALID,
            f"instance {instance.name!r} has {len(instance.addresses)} addresses; use at most "
            f"{limits.INSTANCE_ADDRESSES_MAX}",
        )
    if any(character.isspace() for character in instance.handle):
        raise Refused(
            Code.NAME_INVALID,
            f"the handle {instance.handle!r} of {instance.name!r} has a space, and drivers put "
            "handles side by side; choose one without",
        )
    for address in instance.addresses:
        refuse_address(address)
    for key, value in instance.tags.items():
        limits.refuse_text("tag", key + value)


def refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Refused(
            Code.NAME_INVALID,
            f"{name[:100]!r} is no name; use 1 to 64 letters, digits, '.', '-' and '_', beginning "
            "with a letter or digit and not ending in '.' or '-'",
        )


def refuse_flexible_name(name: str) -> None:
    """Raise Refused if the names of a flexible scale set's instances would be too long."""
    if len(name) > limits.FLEXIBLE_SET_CHARS_MAX:
        raise Refused(
            Code.NAME_INVALID,
            f"the name {name[:100]!r} of the flexible scale set has {len(name)} characters; use at "
            f"most {limits.FLEXIBLE_SET_CHARS_MAX}, because its instances are named after it and "
            f"have at most {limits.FLEXIBLE_NAME_CHARS_MAX}",
        )


@lru_cache(ADDRESSES_CACHED_MAX)
def refuse_address(text: str) -> None:
    """Raise Refused if the text is not a canonical IP address, so that equal addresses are equal
    texts.

    A link-local IPv6 address is refused too, because it may exist once on each link and so does not
    identify an instance.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
        canonical = str(getattr(address, "ipv4_mapped", None) or address)
    except ValueError:
        canonical = ""
    else:
        if address.version == 6 and address.is_link_local:
            raise Refused(
                Code.ADDRESS_INVALID,
                f"{text!r} is a link-local address, which another instance may have on another "
                "link; give the instance one that is unique, like 'fd00::5' or '10.0.0.5'",
            )
    if canonical != text:
        hint = f"write it as {canonical!r}" if canonical else "write one like '10.0.0.5'"
        raise Refused(Code.ADDRESS_INVALID, f"{text!r} is no IP address as we need it; {hint}")


def resource_key(roster: Roster) -> tuple[str, str, str, str]:
    """Return what names the resource: the placement groups of a scale set have the same key."""
    return (roster.subscription, roster.resource_group, roster.kind, roster.resource)
