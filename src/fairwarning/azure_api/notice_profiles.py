"""Reads and renders `scheduledEventsProfile` (notice times) and `scheduledEventsPolicy`. Pure."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.errors import ArmError, invalid_parameter
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


class NoticeTerms(NamedTuple):
    """The notice before a delete and before a reimage. None means that there is no notice."""

    terminate_notice_ms: int | None
    reimage_notice_ms: int | None


def read_terms(properties: Json) -> NoticeTerms:
    """Reads the notice from the properties of a VM or scale set, or of a virtualMachineProfile.

    Raises ArmError if the profile is not valid.
    """
    profile = _object(_holder(properties), "scheduledEventsProfile")
    terminate = _notice_ms(profile, "terminateNotificationProfile", TERMINATE_NOTICE_MS_MIN)
    if terminate is not None:
        _refuse_terminate(terminate)
    reimage = _notice_ms(profile, "osImageNotificationProfile", REIMAGE_NOTICE_MS)
    if reimage is not None and reimage != REIMAGE_NOTICE_MS:
        raise invalid_parameter(
            "osImageNotificationProfile.notBeforeTimeout",
            f"The value '{format_iso_duration(reimage)}' is invalid; only PT15M is allowed.",
        )
    return NoticeTerms(terminate, reimage)


def terms_json(terms: NoticeTerms) -> Json:
    """Renders a `scheduledEventsProfile`. As on Azure, a notice that is off is not shown."""
    found: Json = {}
    if terms.terminate_notice_ms is not None:
        found["terminateNotificationProfile"] = _enabled(terms.terminate_notice_ms)
    if terms.reimage_notice_ms is not None:
        found["osImageNotificationProfile"] = _enabled(terms.reimage_notice_ms)
    return found


def read_policy(properties: Json, before: Policy) -> Policy:
    """Returns the policy `before` with the requested changes.

    A missing member does not change. An empty member gets its default value. Raises ArmError.
    """
    requested = _object(properties, "scheduledEventsPolicy")
    reboot = _approves(requested, "userInitiatedReboot", before.approve_user_reboot, False)
    redeploy = _approves(requested, "userInitiatedRedeploy", before.approve_user_redeploy, False)
    down = _approves(requested, "allInstancesDown", before.approve_all_instances_down, True)
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


def refuse_newer_members(call: ArmCall, properties: Json) -> None:
    """Raises ArmError, as Azure does, for members that are newer than the call's api-version."""
    for path, since, owner in _members(call):
        holder = _at(properties, path[:-1]) or {}
        # A null counts as missing in every version.
        if call.api_version[:10] < since and holder.get(path[-1]) is not None:
            raise ArmError(
                400,
                "BadRequest",
                f"Could not find member '{path[-1]}' on object of type '{owner}'. "
                f"Use api-version {since} or later.",
            )


def without_newer_members(call: ArmCall, properties: Json) -> Json:
    """Returns the properties without members that are newer than the call's api-version.

    Otherwise the client would send these members back, and they would be refused.
    """
    for path, since, _ in _members(call):
        if call.api_version[:10] < since:
            properties = _without(properties, path)
    return properties


def _members(call: ArmCall) -> list[tuple[tuple[str, ...], str, str]]:
    """Returns the path of each newer member, its first api-version, and its containing type."""
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
    """Returns the object with this name. It is empty if it is missing or null. Raises ArmError."""
    value = holder.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid_parameter(name, f"The value of '{name}' must be an object.")
    return value


def _notice_ms(profile: Json, name: str, usual_ms: int) -> int | None:
    requested = _object(profile, name)
    if not _flag(requested, "enable", False):
        return None
    text = requested.get("notBeforeTimeout")
    if text is None:
        return usual_ms
    found = parse_iso_duration_ms(text) if isinstance(text, str) else None
    if found is None:
        raise invalid_parameter(
            f"{name}.notBeforeTimeout",
            f"The value '{str(text)[:40]}' of parameter 'notBeforeTimeout' is no ISO 8601 "
            "duration; write minutes as in 'PT5M'.",
        )
    return found


def _refuse_terminate(notice_ms: int) -> None:
    if not TERMINATE_NOTICE_MS_MIN <= notice_ms <= TERMINATE_NOTICE_MS_MAX:
        raise invalid_parameter(
            "terminateNotificationProfile.notBeforeTimeout",
            f"The value '{format_iso_duration(notice_ms)}' of parameter 'notBeforeTimeout' is out "
            "of range; it must be between 5 and 15 minutes (PT5M to PT15M).",
        )


def _enabled(notice_ms: int) -> Json:
    return {"notBeforeTimeout": format_iso_duration(notice_ms), "enable": True}


def _approves(requested: Json, name: str, before: bool, usual: bool) -> bool:
    if requested.get(name) is None:
        return before
    return _flag(_object(requested, name), "automaticallyApprove", usual)


def _flag(requested: Json, name: str, usual: bool) -> bool:
    """Reads a boolean, which may be written as text. `usual` is the default. Raises ArmError."""
    value = requested.get(name)
    if value is None:
        return usual
    word = str(value).lower()
    if word not in ("true", "false"):
        raise invalid_parameter(
            name, f"The value '{str(value)[:40]}' of '{name}' must be true or false."
        )
    return word == "true"
