"""This module has the keys of a fleet file and their types. `resources.py` interprets the values.

Tables in which the operator chooses the keys have no types here, because an error message must name
the key, and messages of the decoder do not.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fairwarning.core.model import EvictionPolicy, Priority
from fairwarning.core.resources import Orchestration

Table = dict[str, Any]


class ApproveShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_reboot: bool = False
    user_redeploy: bool = False
    all_instances_down: bool = True


class Defaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that each resource may have. At the top of the file they apply to all resources."""

    test: bool | None = None
    subscription: str | None = None
    resource_group: str | None = None
    location: str | None = None
    driver: str | Table | None = None
    hooks: Table | None = None
    approve: ApproveShape | None = None
    notice: Table | None = None


class MemberShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    addresses: list[str] = []
    tags: Table = {}
    handle: str = ""
    update_domain: int | None = None
    fault_domain: int | None = None


class VmShape(Defaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    addresses: list[str] = []
    tags: Table = {}
    handle: str = ""
    priority: Priority = Priority.REGULAR
    eviction: EvictionPolicy = EvictionPolicy.DEALLOCATE


class AvailabilitySetShape(Defaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    instances: list[str | MemberShape] = []
    tags: Table = {}
    update_domains: int = 5
    fault_domains: int = 2


class ScaleSetShape(Defaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    capacity: int = 0
    orchestration: Orchestration = Orchestration.UNIFORM
    addresses: list[str] = []
    tags: Table = {}
    terminate_notice: Any = None
    """The terminate notice. It has no type here, because its mistakes are reported by
    `core/notice.py`.
    """
    priority: Priority = Priority.REGULAR
    eviction: EvictionPolicy = EvictionPolicy.DEALLOCATE
    update_domains: int = 5
    fault_domains: int = 5


class CloudServiceShape(Defaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    roles: Table = {}
    addresses: list[str] = []
    tags: Table = {}
    update_domains: int = 5
    fault_domains: int = 2


class FleetShape(Defaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    vm: list[VmShape] = []
    availability_set: list[AvailabilitySetShape] = []
    scale_set: list[ScaleSetShape] = []
    cloud_service: list[CloudServiceShape] = []


ResourceShape = VmShape | AvailabilitySetShape | ScaleSetShape | CloudServiceShape
SHAPES: Mapping[str, type[ResourceShape]] = {
    "vm": VmShape,
    "availability_set": AvailabilitySetShape,
    "scale_set": ScaleSetShape,
    "cloud_service": CloudServiceShape,
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "priority": tuple(Priority),
    "eviction": tuple(EvictionPolicy),
    "orchestration": tuple(Orchestration),
}
