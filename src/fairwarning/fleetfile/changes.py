"""What a declaration would change, in words for people who must decide whether they want it."""

from collections.abc import Iterator, Mapping

from fairwarning.core.declaring import cancelled_by, declared
from fairwarning.core.instants import format_iso_duration
from fairwarning.core.model import (
    EventId,
    Instance,
    InstanceName,
    Policy,
    Roster,
    Scope,
    ScopeId,
)
from fairwarning.fleetfile.model import Action, FleetChange

NAMES_SHOWN_MAX = 5


def changes_of_new(scope: Scope) -> tuple[FleetChange, ...]:
    return (_of_scope(Action.ADD, scope.id, _names(scope.roster)),)


def changes_of(scope: Scope, wanted: Roster) -> tuple[FleetChange, ...]:
    """Empty if the scope is already what `wanted` says."""
    before, after = scope.roster, declared(scope.roster, wanted)
    doomed = tuple(cancelled_by(scope, wanted))
    if after.live and not before.live:
        return (_of_scope(Action.ADD, scope.id, _names(after)),)
    if before.live and not after.live:
        return (_of_scope(Action.REMOVE, scope.id, _names(before), doomed),)
    return tuple(_in_scope(scope, after, doomed))


def _in_scope(scope: Scope, after: Roster, doomed: tuple[EventId, ...]) -> Iterator[FleetChange]:
    before = scope.roster
    details = [
        _difference(_settings(before), _settings(after)),
        _changed_keys(before.driver_settings, after.driver_settings),
    ]
    if any(details):
        yield _of_scope(Action.CHANGE, scope.id, "; ".join(filter(None, details)))
    for name in _all_names(before, after):
        was = before.instances[name] if before.has_live(name) else None
        becomes = after.instances[name] if after.has_live(name) else None
        change = _of_instance(was, becomes)
        if change is not None:
            action, detail = change
            yield FleetChange(
                action=action,
                what=f"instance {name}",
                scope=scope.id,
                detail=detail,
                events=tuple(id for id in doomed if name in scope.events[id].resources),
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
    notice = {str(type): format_iso_duration(ms) for type, ms in policy.notice_ms.items()}
    return {
        "approved in advance": _list(tuple(name for name, is_so in agreed.items() if is_so)),
        "notice": _pairs(notice),
    }


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    changed = (name for name in before if before[name] != after[name])
    return "; ".join(f"{name} {before[name]} → {after[name]}" for name in changed)


def _changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Without the values, which may be secret."""
    keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return f"driver settings {', '.join(keys)} changed" if keys else ""


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
    return "none" if duration_ms is None else format_iso_duration(duration_ms)
