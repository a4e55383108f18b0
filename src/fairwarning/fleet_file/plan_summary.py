"""This module describes in words what a declaration would change, so that people can decide about
it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from fairwarning.common.durations import human_ms
from fairwarning.core.declare import Names, cancelled_by, declared, leaving
from fairwarning.core.hooks import Hooks, HookStage
from fairwarning.core.model import (
    EventId,
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Policy,
    Roster,
    Scope,
    ScopeId,
)
from fairwarning.core.notice import operation_notice_ms
from fairwarning.core.pending_deletions import is_due_terminate, pending_terminate
from fairwarning.core.scope_names import short_name
from fairwarning.fleet_file.model import Action, FleetChange

WARNINGS_MAX = 10  # More would bury the changes.
NAMES_SHOWN_MAX = 5  # A line of a plan stays readable.


def changes_of_new(scope: Scope) -> tuple[FleetChange, ...]:
    return (_of_scope(Action.ADD, scope.id, _names(scope.roster)),)


def changes_of(scope: Scope, wanted: Roster, without_notice: Names = ()) -> tuple[FleetChange, ...]:
    """Return the changes to a scope. There are none if the scope is already as `wanted` says, or
    will be so when pending events are over.
    """
    before, after = scope.roster, declared(scope, wanted, without_notice)
    doomed = tuple(cancelled_by(scope, wanted, without_notice))
    if after.live and not before.live:
        return (_of_scope(Action.ADD, scope.id, _names(after)),)
    # Each instance that is due a Terminate gets a line of its own.
    is_removed = before.live and not after.live
    if is_removed and not any(is_due_terminate(scope, each) for each in before.live):
        return (_of_scope(Action.REMOVE, scope.id, _names(before), doomed),)
    leavers = tuple(_leaver(scope, each) for each in leaving(scope, wanted, without_notice))
    return (*_in_scope(scope, after, doomed), *filter(None, leavers))


def changes_of_empty_set(scope: Scope, wanted: Roster) -> tuple[FleetChange, ...]:
    """Return the change that adds or removes a scale set without instances, if there is one.

    `scope` is the first placement group of the set.
    """
    if scope.roster.is_standing == wanted.is_standing:
        return ()
    action = Action.ADD if wanted.is_standing else Action.REMOVE
    return (_of_scope(action, scope.id, "no instances"),)


def shared_names(rosters: Iterable[tuple[ScopeId, Roster]]) -> tuple[str, ...]:
    """Return a warning for each name that instances of several scopes have, up to a limit."""
    holders: dict[InstanceName, list[ScopeId]] = {}
    for scope_id, roster in rosters:
        for each in roster.live:
            holders.setdefault(each.name, []).append(scope_id)
    shared = {name: sorted(ids) for name, ids in holders.items() if len(ids) > 1}
    warnings = [_shared_name(name, ids) for name, ids in list(shared.items())[:WARNINGS_MAX]]
    if len(shared) > WARNINGS_MAX:
        warnings.append(f"{len(shared) - WARNINGS_MAX} more names are in several sets too")
    return tuple(warnings)


def _shared_name(name: InstanceName, ids: Sequence[ScopeId]) -> str:
    ways = [f"{short_name(each, ids)}/{name}" for each in ids[:NAMES_SHOWN_MAX]]
    return (
        f"{len(ids)} sets have an instance {name}: write {' or '.join(ways)} in commands, and "
        f"/vm/{ways[0]} on a loopback endpoint"
    )


def _leaver(scope: Scope, instance: Instance) -> FleetChange | None:
    """Return the change that removes the instance by a Terminate event. It is None if that event is
    pending already.
    """
    if pending_terminate(scope, instance.name) is not None:
        return None
    notice_ms = _notice_ms(scope, instance)
    return FleetChange(
        action=Action.REMOVE,
        what=f"instance {instance.name}",
        scope=scope.id,
        detail=f"leaves by a Terminate event, with {human_ms(notice_ms)} of notice",
        terminate_notice_ms=notice_ms,
    )


def _notice_ms(scope: Scope, instance: Instance) -> int:
    kind, event_type = OperationKind.DELETE, EventType.TERMINATE
    return operation_notice_ms(scope.roster, kind, event_type, instance)


def _in_scope(scope: Scope, after: Roster, doomed: tuple[EventId, ...]) -> Iterator[FleetChange]:
    before = scope.roster
    details = [
        _difference(_settings(before), _settings(after)),
        _changed_keys(before.driver_settings, after.driver_settings),
        _changed_hooks(before.hooks, after.hooks),
    ]
    if any(details):
        yield _of_scope(Action.CHANGE, scope.id, "; ".join(filter(None, details)))
    for name in _all_names(before, after):
        was = before.instances[name] if before.has_live(name) else None
        becomes = after.instances[name] if after.has_live(name) else None
        change = _of_instance(was, becomes)
        if change is not None:
            action, detail = change
            found = FleetChange(
                action=action,
                what=f"instance {name}",
                scope=scope.id,
                detail=detail,
                events=tuple(id for id in doomed if name in scope.events[id].resources),
            )
            if was is not None and becomes is None and is_due_terminate(scope, was):
                found = _unwarned(found, scope, was)
            yield found


def _unwarned(change: FleetChange, scope: Scope, instance: Instance) -> FleetChange:
    notice_ms = _notice_ms(scope, instance)
    return replace(
        change,
        detail=f"leaves at once, without its {human_ms(notice_ms)} of notice",
        terminate_notice_ms=notice_ms,
        without_notice=True,
    )


def _all_names(before: Roster, after: Roster) -> list[InstanceName]:
    return list(dict.fromkeys(each.name for roster in (before, after) for each in roster.live))


def _of_instance(was: Instance | None, becomes: Instance | None) -> tuple[Action, str] | None:
    if becomes is None:
        return (Action.REMOVE, "")
    if was is None:
        return (Action.ADD, f"addresses {_list(becomes.addresses)}" if becomes.addresses else "")
    detail = _difference(_facts(was), _facts(becomes))
    return (Action.CHANGE, detail) if detail else None


def _of_scope(
    action: Action, scope_id: ScopeId, detail: str, events: tuple[EventId, ...] = ()
) -> FleetChange:
    what = f"scope {scope_id}"
    return FleetChange(action=action, what=what, scope=scope_id, detail=detail, events=events)


def _facts(instance: Instance) -> dict[str, str]:
    return {
        "addresses": _list(instance.addresses),
        "update domain": str(instance.update_domain),
        "fault domain": str(instance.fault_domain),
        "tags": _pairs(instance.tags),
        "priority": instance.priority,
        "eviction": instance.eviction,
        "handle": instance.handle or "its name",
    }


def _settings(roster: Roster) -> dict[str, str]:
    return {
        "location": roster.location,
        "test": str(roster.test).lower(),
        "driver": roster.driver,
        "origin": roster.origin,
        "orchestration": "uniform" if roster.is_numbered else "flexible",
        "update domains": str(roster.update_domains),
        "fault domains": str(roster.fault_domains),
        "terminate notice": _duration(roster.model.terminate_notice_ms),
        **_policy(roster.policy),
    }


def _policy(policy: Policy) -> dict[str, str]:
    agreed = {
        "user reboot": policy.approve_user_reboot,
        "user redeploy": policy.approve_user_redeploy,
        "all instances down": policy.approve_all_instances_down,
    }
    notice = {str(type): human_ms(ms) for type, ms in policy.notice_ms.items()}
    return {
        "approved in advance": _list(tuple(name for name, is_so in agreed.items() if is_so)),
        "notice": _pairs(notice),
    }


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    changed = (name for name in before if before[name] != after[name])
    return "; ".join(f"{name} {before[name]} → {after[name]}" for name in changed)


def _changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return a text with the names of the settings that change. It has no values, because they may
    be secret.
    """
    keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return f"driver settings {', '.join(keys)} changed" if keys else ""


def _changed_hooks(before: Hooks, after: Hooks) -> str:
    """Return a text with the names of the hooks before and after the change. It has no arguments
    and no addresses, because they may be secret.
    """
    if before == after:
        return ""
    was, becomes = _hooks(before), _hooks(after)
    return f"hooks {was} → {becomes}" if was != becomes else f"hooks {was} changed"


def _hooks(hooks: Hooks) -> str:
    stages = ((stage, hooks.of(stage)) for stage in HookStage)
    named = (
        f"{stage} {_list(tuple(each.label for each in found))}" for stage, found in stages if found
    )
    return "; ".join(named) or "none"


def _names(roster: Roster) -> str:
    names = [each.name for each in roster.live]
    if not names:
        return "no instances yet"
    if len(names) <= NAMES_SHOWN_MAX:
        return _list(tuple(names))
    return f"{names[0]} … {names[-1]} ({len(names)} instances)"


def _list(texts: tuple[str, ...]) -> str:
    return ", ".join(texts) or "none"


def _pairs(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(pairs.items())) or "none"


def _duration(duration_ms: int | None) -> str:
    return "none" if duration_ms is None else human_ms(duration_ms)
