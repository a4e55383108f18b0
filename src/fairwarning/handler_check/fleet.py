"""The fleet that every case uses, with the instance that the handler runs on."""

import re
from dataclasses import dataclass
from typing import Any

from fairwarning.handler_check.namespace import ENDPOINT

VM = "web-0"
"""The VM that the handler runs on, unless the case or the user wants another one."""
MEMBER = "workers_1"
"""An instance of a scale set. Its host name differs from its name."""
NUMBER_MAX = 999
"""The highest number of an instance that can be asked for. A set has all instances below it."""
_GROUP = 100  # A placement group has so many instances, and only these see the same document.
_OTHERS = ("web-1", "web-2", VM)
_MEMBER = re.compile(r"(?P<set>.+)_(?P<number>0|[1-9][0-9]*)")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """The instances of a case. All of them see the same document."""

    vm: str
    """Where the handler runs."""
    twin: str
    """It is in the update domain of `vm`, so one event may affect both."""
    neighbour: str
    similar: str
    """Its name begins with the one of `vm`. It is empty if no instance has such a name."""
    hostname: str


def is_member(vm: str) -> bool:
    """Return whether the name is one of an instance of a scale set, as `workers_1`."""
    found = _MEMBER.fullmatch(vm)
    return found is not None and int(found["number"]) <= NUMBER_MAX


def has_similar(vm: str) -> bool:
    """Return whether the scope of the instance can have one whose name begins with this name."""
    return is_member(vm) and 1 <= _number(vm) <= 9


def instances(vm: str) -> Instances:
    """Return the instances of a case whose handler runs on `vm`."""
    if not is_member(vm):
        twin, neighbour = [each for each in _OTHERS if each != vm][:2]
        return Instances(vm=vm, twin=twin, neighbour=neighbour, similar="", hostname=vm)
    number, name = _number(vm), _set(vm)
    first = number - number % _GROUP
    near = [first + (number + step) % _GROUP for step in (1, 2)]
    return Instances(
        vm=vm,
        twin=f"{name}_{near[1]}",
        neighbour=f"{name}_{near[0]}",
        similar=f"{vm}0" if has_similar(vm) else "",
        hostname=f"{name}{_base36(number):0>6}",
    )


def fleet(vm: str, *, is_at_endpoint: bool) -> dict[str, Any]:
    """Return the fleet. If `is_at_endpoint` is true, `vm` has the endpoint's address."""
    at = [ENDPOINT] if is_at_endpoint else []
    if is_member(vm):
        return {"test": True, "scale_set": [_scale_set(vm, at)]}
    found = instances(vm)
    domains = {vm: 0, found.twin: 0, found.neighbour: 1}
    members = [
        {"name": name, "update_domain": domain, "addresses": at if name == vm else []}
        for name, domain in domains.items()
    ]
    return {
        "test": True,
        "availability_set": [{"name": "web", "update_domains": 2, "instances": members}],
    }


def _scale_set(vm: str, at: list[str]) -> dict[str, Any]:
    number = _number(vm)
    group_end = number - number % _GROUP + _GROUP
    capacity = group_end if number % _GROUP >= _GROUP - 2 else max(number + 3, 10 * number + 1)
    capacity = min(capacity, group_end)
    return {
        "name": _set(vm),
        "capacity": capacity,
        "terminate_notice": "PT5M",
        # One domain, so that one event may affect any two instances.
        "update_domains": 1,
        "addresses": [*(_other_address(each) for each in range(number)), *at] if at else [],
    }


def _other_address(number: int) -> str:
    return f"10.213.{number // 250}.{number % 250 + 1}"


def _set(vm: str) -> str:
    return vm.rpartition("_")[0]


def _number(vm: str) -> int:
    return int(vm.rpartition("_")[2])


def _base36(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text
