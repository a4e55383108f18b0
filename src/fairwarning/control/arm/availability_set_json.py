"""An availability set as ARM shows it, and what its body says of domains. Pure."""

from typing import Any

from fairwarning.control.arm.availability_set_standing import TYPE, StandingSet
from fairwarning.control.arm.bodies import object_at
from fairwarning.control.arm.call import Json
from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.fleet import Machine
from fairwarning.control.arm.kept_machines import machine_id
from fairwarning.control.arm.paths import resource_id
from fairwarning.control.arm.profiles import policy_json
from fairwarning.core.model import Policy

UPDATE_DOMAINS_MAX = 20
FAULT_DOMAINS_MAX = 3
_DERIVED = ("platformUpdateDomainCount", "platformFaultDomainCount", "virtualMachines")


def set_json(found: StandingSet) -> Json:
    roster = found.scope.roster
    body = {} if found.kept is None else found.kept.body
    said = object_at(body, "properties")
    machines = [Machine(found.scope, each) for each in roster.live]
    properties: Json = {
        **{name: value for name, value in said.items() if name not in _DERIVED},
        "platformUpdateDomainCount": roster.update_domains,
        "platformFaultDomainCount": roster.fault_domains,
        "virtualMachines": [{"id": machine_id(each)} for each in machines],
    }
    policy = object_at(said, "scheduledEventsPolicy")
    if policy or roster.policy != Policy():
        properties["scheduledEventsPolicy"] = {**policy, **policy_json(roster.policy)}
    return {
        "name": roster.resource,
        "id": resource_id(roster.subscription, roster.resource_group, TYPE, roster.resource),
        "type": TYPE,
        "sku": {"name": "Classic"},
        "tags": {},
        **body,
        "location": roster.location,
        "properties": properties,
    }


def domains_of(body: Json, usual: tuple[int, int]) -> tuple[int, int]:
    """Update and fault domains; what is not said is as usual. Raises ArmError."""
    properties = object_at(body, "properties")
    return (
        _count(properties, "platformUpdateDomainCount", usual[0], UPDATE_DOMAINS_MAX),
        _count(properties, "platformFaultDomainCount", usual[1], FAULT_DOMAINS_MAX),
    )


def _count(properties: Json, name: str, usual: int, most: int) -> int:
    value: Any = properties.get(name)
    if value is None or value == usual:
        return usual
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ArmError(
            400,
            "InvalidParameter",
            f"The value '{str(value)[:40]}' of parameter '{name}' is out of range; it must be a "
            f"number from 1 to {most}.",
            target=name,
        )
    return value
