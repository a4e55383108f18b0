"""Reads the members of a VM's body that the fleet needs, and removes secrets. Pure."""

from msgspec import Struct

from fairwarning.azure_api.body_values import location_of, object_at, tags_of, text_at
from fairwarning.azure_api.errors import invalid_parameter, invalid_value, not_changeable
from fairwarning.azure_api.paths import same_id
from fairwarning.azure_api.request import Json
from fairwarning.core.model import EvictionPolicy, Priority

_PRIORITIES = {
    "": Priority.REGULAR,
    "regular": Priority.REGULAR,
    "spot": Priority.SPOT,
    "low": Priority.SPOT,
}
_EVICTIONS = {
    "": EvictionPolicy.DEALLOCATE,
    "deallocate": EvictionPolicy.DEALLOCATE,
    "delete": EvictionPolicy.DELETE,
}
_SECRETS = ("adminpassword", "customdata", "secrets")


class WantedVm(Struct, frozen=True, kw_only=True):
    location: str
    tags: dict[str, str]
    priority: Priority
    eviction: EvictionPolicy
    availability_set: str
    """The id of the availability set. It is empty if the VM is in none."""
    scale_set: str
    """The id of the scale set. It is empty if the VM is in none."""


def read_wanted(body: Json) -> WantedVm:
    """Reads the body of a VM. Raises ArmError."""
    properties = object_at(body, "properties")
    wanted = WantedVm(
        location=location_of(body),
        tags=tags_of(body),
        priority=_priority(text_at(properties, "priority")),
        eviction=_eviction(text_at(properties, "evictionPolicy")),
        availability_set=text_at(properties, "availabilitySet", "id"),
        scale_set=text_at(properties, "virtualMachineScaleSet", "id"),
    )
    if wanted.availability_set and wanted.scale_set:
        raise invalid_parameter(
            "availabilitySet",
            "A VM is in an availability set or in a scale set, not in both; leave out "
            "'availabilitySet' or 'virtualMachineScaleSet'.",
        )
    return wanted


def without_secrets(body: Json) -> Json:
    """Returns the body without secrets and user data, which are never stored."""
    properties = {k: v for k, v in object_at(body, "properties").items() if k.lower() != "userdata"}
    profile = object_at(properties, "osProfile")
    if profile:
        properties["osProfile"] = {k: v for k, v in profile.items() if k.lower() not in _SECRETS}
    return {**body, "properties": properties}


def refuse_changed(properties: Json, name: str, before: str) -> None:
    """Raises ArmError if the reference `name` would change.

    `before` is the id that the VM refers to now. It is empty if there is none.
    """
    requested = text_at(properties, name, "id")
    if requested and not same_id(requested, before):
        raise not_changeable(name)


def refuse_changed_word(properties: Json, name: str, before: str) -> None:
    requested = text_at(properties, name)
    if requested and requested.lower() != before.lower():
        raise not_changeable(name)


def refuse_own_policy(properties: Json, place: str) -> None:
    if object_at(properties, "scheduledEventsPolicy"):
        raise invalid_parameter(
            "scheduledEventsPolicy",
            f"A VM in {place} shares the scheduledEventsPolicy of all its members; set it there "
            "and leave it out here.",
        )


def refuse_without_size(properties: Json) -> None:
    if not object_at(properties, "hardwareProfile"):
        raise invalid_parameter(
            "hardwareProfile", "Required parameter 'hardwareProfile' is missing (null)."
        )


def _priority(text: str) -> Priority:
    found = _PRIORITIES.get(text.lower())
    if found is None:
        raise invalid_value("priority", text, "use 'Regular' or 'Spot'")
    return found


def _eviction(text: str) -> EvictionPolicy:
    found = _EVICTIONS.get(text.lower())
    if found is None:
        raise invalid_value("evictionPolicy", text, "use 'Deallocate' or 'Delete'")
    return found
