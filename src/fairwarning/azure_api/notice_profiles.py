"""What an owner agrees to in ARM's words: notice before deletes and reimages, and policy. Pure."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import ArmCall, Json
from fairwarning.common.durations import format_iso_duration, parse_iso_duration_ms
from fairwarning.core.model import Policy
from fairwarning.core.notice import (
    REIMAGE_NOTICE_MS,
    TERMINATE_NOTICE_MS_MAX,
    TERMINATE_NOTICE_MS_MIN,
)

_SET = "virtualMachineScaleSets"
_TYPE_NAMES = {
    _SET: "VirtualMachineScaleSetProperties",
    "virtualMachines": "VirtualMachineProperties",
    "availabilitySets": "AvailabilitySetProperties",
}


class Terms(NamedTuple):
    """How long before a delete, and before a reimage, an instance is told; None: not at all."""

    terminate_notice_ms: int | None
    reimage_notice_ms: int | None


def terms_of(properties: Json) -> Terms:
    """`properties` are those of a VM or a scale set, or a scale set's virtualMachineProfile."""
    profile = _object(_holder(properties), "scheduledEventsProfile")
    terminate = _notice_ms(profile, "terminateNotificationProfile", TERMINATE_NOTICE_MS_MIN)
    if terminate is not None:
        _refuse_terminate(terminate)
    reimage = _notice_ms(profile, "osImageNotificationProfile", REIMAGE_NOTICE_MS)
    if reimage is not None and reimage != REIMAGE_NOTICE_MS:
        raise _invalid(
            "osImageNotificationProfile.notBeforeTimeout",
            f"The value '{format_iso_duration(reimage)}' is invalid; only PT15M is allowed.",
        )
    return Terms(terminate, reimage)


def terms_json(terms: Terms) -> Json:
    """A `scheduledEventsProfile`; empty if nothing is told."""
    found: Json = {}
    if terms.terminate_notice_ms is not None:
        found["terminateNotificationProfile"] = _enabled(terms.terminate_notice_ms)
    if terms.reimage_notice_ms is not None:
        found["osImageNotificationProfile"] = _enabled(terms.reimage_notice_ms)
    return found


def with_terms(kept: Json, terms: Terms) -> Json:
    """A kept profile that says what is true now: what is no longer told is there, but off."""
    off = {name: {**kept[name], "enable": False} for name in kept if isinstance(kept[name], dict)}
    return {**off, **terms_json(terms)}


def policy_of(properties: Json, before: Policy) -> Policy:
    """As a caller says it: what he leaves out stays, and an empty part means its default."""
    said = _object(properties, "scheduledEventsPolicy")
    reboot = _approves(said, "userInitiatedReboot", before.approve_user_reboot, False)
    redeploy = _approves(said, "userInitiatedRedeploy", before.approve_user_redeploy, False)
    down = _approves(said, "allInstancesDown", before.approve_all_instances_down, True)
    return replace(
        before,
        approve_user_reboot=reboot,
        approve_user_redeploy=redeploy,
        approve_all_instances_down=down,
    )


def policy_json(policy: Policy) -> Json:
    return {
        "userInitiatedRedeploy": {"automaticallyApprove": policy.approve_user_redeploy},
        "userInitiatedReboot": {"automaticallyApprove": policy.approve_user_reboot},
        "allInstancesDown": {"automaticallyApprove": policy.approve_all_instances_down},
    }


def refuse_too_new(call: ArmCall, properties: Json) -> None:
    """Azure's own answer to a member that the api-version of the call does not know."""
    for path, since, owner in _members(call):
        holder = _at(properties, path[:-1]) or {}
        # A null says nothing, in whatever version.
        if call.api_version[:10] < since and holder.get(path[-1]) is not None:
            raise ArmError(
                400,
                "BadRequest",
                f"Could not find member '{path[-1]}' on object of type '{owner}'. "
                f"Use api-version {since} or later.",
            )


def without_too_new(call: ArmCall, properties: Json) -> Json:
    """As a client of an old api-version may see it, so that it can send it back."""
    for path, since, _ in _members(call):
        if call.api_version[:10] < since:
            properties = _without(properties, path)
    return properties


def _members(call: ArmCall) -> list[tuple[tuple[str, ...], str, str]]:
    """Where each newer member is, since when, and what Azure calls its owner."""
    type = call.path.types[0] if call.path.types else ""
    is_set = type == _SET
    above = ("virtualMachineProfile",) if is_set else ()
    profile = (*above, "scheduledEventsProfile")
    policy = ("scheduledEventsPolicy",)
    grid = (*policy, "scheduledEventsAdditionalPublishingTargets", "eventGridAndResourceGraph")
    properties = _TYPE_NAMES.get(type, "VirtualMachineProperties")
    return [
        (profile, "2019-03-01", "VirtualMachineProfile" if is_set else properties),
        ((*profile, "osImageNotificationProfile"), "2022-11-01", "ScheduledEventsProfile"),
        (policy, "2024-03-01" if is_set else "2024-07-01", properties),
        ((*policy, "allInstancesDown"), "2025-04-01", "ScheduledEventsPolicy"),
        ((*grid, "scheduledEventsApiVersion"), "2025-04-01", "EventGridAndResourceGraph"),
    ]


def _at(properties: Json, path: tuple[str, ...]) -> Json | None:
    found: Any = properties
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _without(properties: Json, path: tuple[str, ...]) -> Json:
    name, *rest = path
    if name not in properties:
        return properties
    if not rest:
        return {each: value for each, value in properties.items() if each != name}
    inside = properties[name]
    is_object = isinstance(inside, dict)
    return {**properties, name: _without(inside, tuple(rest)) if is_object else inside}


def _holder(properties: Json) -> Json:
    inside = properties.get("virtualMachineProfile")
    return inside if isinstance(inside, dict) else properties


def _object(holder: Json, name: str) -> Json:
    """Empty if it is missing or null."""
    value = holder.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(name, f"The value of '{name}' must be an object.")
    return value


def _notice_ms(profile: Json, name: str, usual_ms: int) -> int | None:
    said = _object(profile, name)
    if not _flag(said, "enable", False):
        return None
    text = said.get("notBeforeTimeout")
    if text is None:
        return usual_ms
    found = parse_iso_duration_ms(text) if isinstance(text, str) else None
    if found is None:
        raise _invalid(
            f"{name}.notBeforeTimeout",
            f"The value '{str(text)[:40]}' of parameter 'notBeforeTimeout' is no ISO 8601 "
            "duration; write minutes as in 'PT5M'.",
        )
    return found


def _refuse_terminate(notice_ms: int) -> None:
    if not TERMINATE_NOTICE_MS_MIN <= notice_ms <= TERMINATE_NOTICE_MS_MAX:
        raise _invalid(
            "terminateNotificationProfile.notBeforeTimeout",
            f"The value '{format_iso_duration(notice_ms)}' of parameter 'notBeforeTimeout' is out "
            "of range; it must be between 5 and 15 minutes (PT5M to PT15M).",
        )


def _enabled(notice_ms: int) -> Json:
    return {"notBeforeTimeout": format_iso_duration(notice_ms), "enable": True}


def _approves(said: Json, name: str, before: bool, usual: bool) -> bool:
    if said.get(name) is None:
        return before
    return _flag(_object(said, name), "automaticallyApprove", usual)


def _flag(said: Json, name: str, usual: bool) -> bool:
    """Booleans arrive as text too."""
    value = said.get(name)
    if value is None:
        return usual
    word = str(value).lower()
    if word not in ("true", "false"):
        raise _invalid(name, f"The value '{str(value)[:40]}' of '{name}' must be true or false.")
    return word == "true"


def _invalid(target: str, message: str) -> ArmError:
    return ArmError(400, "InvalidParameter", message, target=target)
