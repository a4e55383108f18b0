"""Reads the members of a scale set's body that the fleet needs. Pure.

Only these members are read and checked. All other members matter only to their owner.
"""

import hashlib
import re
from typing import TypeGuard, TypeVar

import msgspec
from msgspec import Struct

from fairwarning.azure_api.body_values import location_of, object_at, objects_at, tags_of, text_at
from fairwarning.azure_api.errors import (
    ArmError,
    invalid_parameter,
    invalid_value,
    not_allowed,
    not_changeable,
)
from fairwarning.azure_api.notice_profiles import NoticeTerms, read_terms
from fairwarning.azure_api.request import Json
from fairwarning.core.limits import FLEXIBLE_NAME_CHARS_MAX, SCOPE_INSTANCES_MAX
from fairwarning.core.model import EvictionPolicy, Priority
from fairwarning.core.resources import CAPACITY_MAX, FAULT_DOMAINS_MAX, Orchestration

T = TypeVar("T")
_NAME_CHARS_MAX = {Orchestration.UNIFORM: 64, Orchestration.FLEXIBLE: FLEXIBLE_NAME_CHARS_MAX}
PREFIX_CHARS_MAX = 58
"""The maximum length of the prefix. Six digits follow it in a name of up to 64 characters."""
FAULT_DOMAINS = 5
"""The default number of fault domains, as on Azure."""
MODES = {each.lower(): each for each in ("Manual", "Automatic", "Rolling")}
ORCHESTRATIONS = {"uniform": Orchestration.UNIFORM, "flexible": Orchestration.FLEXIBLE}
_PRIORITIES = {"regular": Priority.REGULAR, "spot": Priority.SPOT, "low": Priority.SPOT}
_EVICTIONS = {"deallocate": EvictionPolicy.DEALLOCATE, "delete": EvictionPolicy.DELETE}
_SUFFIX_CHARS = {Orchestration.UNIFORM: 4, Orchestration.FLEXIBLE: 9}
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)


class WantedScaleSet(Struct, frozen=True, kw_only=True):
    location: str
    tags: dict[str, str]
    capacity: int
    orchestration: Orchestration
    mode: str
    priority: Priority
    eviction: EvictionPolicy
    fault_domains: int
    is_single_group: bool
    """Whether the owner wants a single placement group."""
    terms: NoticeTerms
    subnet_id: str
    """The subnet from which the instances get addresses. If it is empty, they get none."""
    computer_name_prefix: str
    fingerprint: str
    """The hash from `fingerprint_of`. If it changes, the scale set has a new model."""


def read_wanted(body: Json) -> WantedScaleSet:
    """Reads the body of a scale set. Raises ArmError if it is not valid."""
    properties = object_at(body, "properties")
    profile = object_at(properties, "virtualMachineProfile")
    wanted = WantedScaleSet(
        location=location_of(body),
        tags=tags_of(body),
        capacity=_capacity(object_at(body, "sku").get("capacity")),
        orchestration=_orchestration(properties),
        mode=_word(MODES, text_at(properties, "upgradePolicy", "mode"), "Manual", "mode"),
        priority=_word(_PRIORITIES, text_at(profile, "priority"), Priority.REGULAR, "priority"),
        eviction=_word(
            _EVICTIONS,
            text_at(profile, "evictionPolicy"),
            EvictionPolicy.DEALLOCATE,
            "evictionPolicy",
        ),
        fault_domains=_fault_domains(properties.get("platformFaultDomainCount")),
        is_single_group=properties.get("singlePlacementGroup") is True,
        terms=read_terms(profile),
        subnet_id=subnet_of(profile),
        computer_name_prefix=_prefix(text_at(profile, "osProfile", "computerNamePrefix")),
        fingerprint=fingerprint_of(body),
    )
    _refuse_spot(profile, wanted)
    return wanted


def fingerprint_of(body: Json) -> str:
    """Returns a hash of the size and the profile. It is empty if the body has neither.

    The hash does not include the notice terms, because the core compares them separately.
    """
    profile = object_at(body, "properties", "virtualMachineProfile")
    rest = {name: value for name, value in profile.items() if name != "scheduledEventsProfile"}
    size = text_at(body, "sku", "name")
    if not rest and not size:
        return ""
    return hashlib.sha256(msgspec.json.encode([size, rest], order="sorted")).hexdigest()


def subnet_of(profile: Json) -> str:
    address = _primary(objects_at(primary_card(profile), "properties", "ipConfigurations"))
    return text_at(address, "properties", "subnet", "id")


def primary_card(profile: Json) -> Json:
    """Returns the profile's primary network interface. It is empty if the profile has none."""
    return _primary(objects_at(profile, "networkProfile", "networkInterfaceConfigurations"))


def _primary(entries: list[Json]) -> Json:
    choose_instances = [
        each for each in entries if object_at(each, "properties").get("primary") is True
    ]
    return next(iter([*choose_instances, *entries]), {})


def refuse_name(name: str, orchestration: Orchestration) -> None:
    """Raises ArmError if the name is too long. Instances get this name with a suffix."""
    of_instance = _NAME_CHARS_MAX[orchestration]
    longest = of_instance - _SUFFIX_CHARS[orchestration]
    if len(name) > longest:
        raise ArmError(
            400,
            "InvalidResourceName",
            f"The name '{name[:80]}' of the {orchestration} scale set has {len(name)} characters; "
            f"use at most {longest}, because its instances are named after it and a name has at "
            f"most {of_instance}.",
        )


def refuse_too_many(name: str, wanted: WantedScaleSet) -> None:
    """Raises ArmError if a single placement group would have more instances than it can."""
    subject = f"Virtual Machine Scale Set '{name}'"
    if wanted.is_single_group and wanted.capacity > SCOPE_INSTANCES_MAX:
        raise not_allowed(
            f"Unable to create or update {subject} as it exceeds the "
            f"total limit of '{SCOPE_INSTANCES_MAX}' Virtual Machine instances."
        )


def refuse_changed(before: WantedScaleSet, wanted: WantedScaleSet) -> None:
    """Raises ArmError if a property would change that is fixed after the creation."""
    fixed = {
        "orchestrationMode": before.orchestration is wanted.orchestration,
        "priority": before.priority is wanted.priority,
        "platformFaultDomainCount": before.fault_domains == wanted.fault_domains,
    }
    for name, is_kept in fixed.items():
        if not is_kept:
            raise not_changeable(name)


def _prefix(text: str) -> str:
    if len(text) > PREFIX_CHARS_MAX:
        hint = f"use at most {PREFIX_CHARS_MAX} characters"
        raise invalid_value("osProfile.computerNamePrefix", text, hint)
    return text


def _capacity(value: object) -> int:
    if value is None:
        return 0
    is_text = isinstance(value, str) and _WHOLE.fullmatch(value) is not None
    if not (_is_whole(value) or is_text) or not 0 <= int(str(value)) <= CAPACITY_MAX:
        raise invalid_value("sku.capacity", value, f"use a whole number from 0 to {CAPACITY_MAX}")
    return int(str(value))


def _orchestration(properties: Json) -> Orchestration:
    word = text_at(properties, "orchestrationMode")
    return _word(ORCHESTRATIONS, word, Orchestration.UNIFORM, "orchestrationMode")


def _fault_domains(value: object) -> int:
    if value is None:
        return FAULT_DOMAINS
    if not _is_whole(value) or not 1 <= value <= FAULT_DOMAINS_MAX:
        raise invalid_value("platformFaultDomainCount", value, f"use 1 to {FAULT_DOMAINS_MAX}")
    return value


def _is_whole(value: object) -> TypeGuard[int]:
    """Returns whether the value is an int and not a boolean. In Python, `True` is an int too."""
    return isinstance(value, int) and not isinstance(value, bool)


def _word(known: dict[str, T], word: str, default: T, name: str) -> T:
    if not word:
        return default
    if word.lower() not in known:
        words = ", ".join(each.capitalize() for each in known)
        raise invalid_value(name, word, f"use one of {words}")
    return known[word.lower()]


def _refuse_spot(profile: Json, wanted: WantedScaleSet) -> None:
    is_spot = wanted.priority is Priority.SPOT
    if is_spot and wanted.terms.terminate_notice_ms is not None:
        raise invalid_parameter(
            "terminateNotificationProfile",
            "Terminate notifications cannot be enabled for Spot Virtual Machines; leave "
            "terminateNotificationProfile out, or use priority Regular.",
        )
    if profile.get("evictionPolicy") is not None and not is_spot:
        raise invalid_parameter(
            "evictionPolicy",
            "Eviction policy can be set only on Azure Spot Virtual Machines; set priority to "
            "Spot, or leave evictionPolicy out.",
        )
