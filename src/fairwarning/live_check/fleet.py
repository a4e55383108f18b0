"""The fleet of the live check: its fleet file, and the scopes that it declares.

Most scopes are test fleets, where the notice may be as short as a second, so that much happens in
a minute. The scope `real` is not a test fleet, and its notice is a quarter of an hour.
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwarning.live_check.records import Scope

BUSY_SCOPE = "web"
"""The scope that most callers use."""

_IMPACT_S = 0.4  # Short, so that much happens in a minute.
_FAILURES_ONE_IN = 25  # Often enough that some events fail several times.
# The minimum notice of Azure.
_REAL_NOTICE_S = {"Freeze": 900, "Reboot": 900, "Redeploy": 600, "Preempt": 30}
_TEST_NOTICE_S = {"Freeze": 1, "Reboot": 2, "Redeploy": 2, "Preempt": 1}  # Short, as above.
_POLICIES = {
    "user_reboot": "policy:userInitiatedReboot",
    "user_redeploy": "policy:userInitiatedRedeploy",
    "all_instances_down": "policy:allInstancesDown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One resource of the fleet file, which is one scope."""

    table: str
    name: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    test: bool = True
    terminate_notice_s: int | None = None
    approve: Sequence[str] = ()
    capacity: int = 0
    """How many instances a scale set has at the start. It is 0 for other resources."""
    is_watched: bool = True
    """Whether the instances of this scope poll."""

    @property
    def minimum_notice_s(self) -> dict[str, int]:
        return _TEST_NOTICE_S if self.test else _REAL_NOTICE_S


def _names(set_name: str, count: int) -> list[str]:
    return [f"{set_name}-{number}" for number in range(count)]


FLEET: tuple[Declared, ...] = (
    Declared(
        table="availability_set",
        name=BUSY_SCOPE,
        keys={"update_domains": 3, "instances": _names(BUSY_SCOPE, 6)},
    ),
    Declared(
        table="availability_set",
        name="db",
        keys={"update_domains": 2, "instances": _names("db", 4)},
        approve=["user_reboot"],
    ),
    Declared(
        table="availability_set",
        name="real",
        keys={"update_domains": 2, "instances": _names("real", 4)},
        test=False,
    ),
    Declared(
        table="scale_set",
        name="workers",
        keys={"orchestration": "uniform", "terminate_notice": "5m"},
        terminate_notice_s=300,
        capacity=5,
    ),
    Declared(
        table="scale_set",
        name="spot",
        keys={"orchestration": "flexible", "priority": "Spot", "eviction": "Deallocate"},
        capacity=4,
    ),
    Declared(table="cloud_service", name="shop", keys={"roles": {"FrontEnd": 2, "BackEnd": 2}}),
    Declared(table="vm", name="lone"),
    Declared(table="vm", name="unwatched", is_watched=False),
)
BY_NAME = {each.name: each for each in FLEET}


def fleet_toml(folder: Path, lease_s: float) -> str:
    """Returns the text of the fleet file. Some impacts take longer than `lease_s`."""
    program = Path(__file__).with_name("driver.py")
    settings = [str(folder), str(_IMPACT_S), str(lease_s * 1.4), str(_FAILURES_ONE_IN)]
    # A check may give a server a wrong clock that way. The driver writes down the right time.
    words = ["env", "-u", "LD_PRELOAD", sys.executable, "-I", "-S", str(program), *settings]
    parts = [
        f'driver = {{ type = "command", run = {_value(shlex.join(words))} }}',
        *(_table(each) for each in FLEET),
    ]
    return "\n\n".join(parts) + "\n"


def _table(declared: Declared) -> str:
    keys: dict[str, Any] = {"name": declared.name, "test": declared.test, **declared.keys}
    # This is off, because evictions stop instances, and a stopped instance needs no approval.
    keys["approve"] = {"all_instances_down": False, **dict.fromkeys(declared.approve, True)}
    if declared.capacity:
        keys["capacity"] = declared.capacity
    if declared.test:
        keys["notice"] = {type: f"{seconds}s" for type, seconds in _TEST_NOTICE_S.items()}
    lines = [f"{key} = {_value(value)}" for key, value in keys.items()]
    return "\n".join([f"[[{declared.table}]]", *lines])


def _value(value: Any) -> str:
    """Returns the value as TOML. Everything except tables is written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


def scope_record(shown: Mapping[str, Any]) -> Scope:
    """Returns the record of a scope. `shown` is its part of the answer to `GET /fleet`."""
    declared = BY_NAME[shown["name"]]
    return Scope(
        id=shown["id"],
        name=declared.name,
        kind=shown["kind"],
        test=declared.test,
        instances=[each["name"] for each in shown["instances"]],
        minimum_notice_s=declared.minimum_notice_s,
        terminate_notice_s=declared.terminate_notice_s,
        policies=[_POLICIES[each] for each in declared.approve],
        activated=shown["activated"],
        incarnation=shown["incarnation"],
    )
