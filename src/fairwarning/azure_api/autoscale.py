"""These handlers keep autoscale settings, and scale a set as one of their rules says.

Nothing here measures load, so no rule fires by itself. `POST …/trigger` stands for the moment at
which Azure's autoscale would act: it changes the capacity of the scale set by the rule of the given
direction, within the limits of the profile. Instances that go are warned as in every scale-in.
"""

from dataclasses import replace
from typing import Any

from fairwarning.azure_api.body_values import object_at, objects_at, text_at, wrong_kind
from fairwarning.azure_api.errors import ArmError, not_allowed
from fairwarning.azure_api.operations import operation_reply
from fairwarning.azure_api.paths import ResourcePath, find_path
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.stored_resource_handlers import StoredKind
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS
from fairwarning.core.resources import CAPACITY_MAX

TYPE = "Microsoft.Insights/autoscaleSettings"
PROFILES_MAX = 20
RULES_MAX = 10
_SETS = "microsoft.compute/virtualmachinescalesets"
_SIGNS = {"increase": 1, "decrease": -1}
_CHANGES = ("ChangeCount", "PercentChangeCount", "ExactCount", "ServiceAllowedNextValue")


async def _check(_: Arm, __: ArmCall, body: Json) -> None:
    properties = object_at(body, "properties")
    profiles = objects_at(properties, "profiles")
    if not 1 <= len(profiles) <= PROFILES_MAX:
        raise _invalid("profiles", f"give 1 to {PROFILES_MAX} profiles, not {len(profiles)}")
    for profile in profiles:
        _limits(profile)
        rules = objects_at(profile, "rules")
        if len(rules) > RULES_MAX:
            raise _invalid("rules", f"a profile has at most {RULES_MAX} rules, not {len(rules)}")
        for rule in rules:
            _change(rule)
    if find_path(text_at(properties, "targetResourceUri")) is None:
        raise _invalid("targetResourceUri", "give the id of the resource to scale")


def _properties(record: ResourceRecord) -> Json:
    given = object_at(record.body, "properties")
    return {"enabled": True, "name": record.name, "notifications": [], **given}


SETTINGS = StoredKind(type=TYPE, check=_check, render=_properties)


async def trigger(arm: Arm, call: ArmCall) -> Reply:
    record = await SETTINGS.find(arm, call.path)
    properties = _properties(record)
    if properties["enabled"] is not True:
        raise not_allowed(f"The autoscale setting '{record.name}' is disabled.")
    direction = text_at(call.body or {}, "direction")
    if direction.lower() not in _SIGNS:
        raise _invalid("direction", f"use Increase or Decrease, not '{direction[:40]}'")
    target = _target(properties)
    version = API_VERSIONS["Microsoft.Compute"]
    why = call.why or f"autoscale setting {record.name}"
    own = replace(call, method="GET", path=target, body=None, query={"api-version": version})
    found: Any = (await arm.answer(own)).body
    before = int(found["sku"]["capacity"])
    after = next_capacity(objects_at(properties, "profiles")[0], direction, before)
    scaled = await arm.answer(
        replace(own, method="PATCH", body={"sku": {"capacity": after}}, why=why)
    )
    assert scaled.operation is not None, "a change of the capacity has begun an operation"
    shown = {"previousCapacity": before, "capacity": after}
    return operation_reply(call, scaled.operation, found["location"], 202, shown)


def next_capacity(profile: Json, direction: str, present: int) -> int:
    """Returns the capacity that the profile's first rule of this direction asks for.

    Without such a rule the step is one instance. The profile's limits hold always.
    """
    sign = _SIGNS[direction.lower()]
    kind, value = "ChangeCount", 1
    for rule in objects_at(profile, "rules"):
        if text_at(rule, "scaleAction", "direction").lower() == direction.lower():
            kind, value = _change(rule)
            break
    if kind == "ExactCount":
        wanted = value
    elif kind == "PercentChangeCount":
        wanted = present + sign * max(1, round(present * value / 100))
    else:
        wanted = present + sign * value
    minimum, maximum = _limits(profile)
    return min(max(wanted, minimum), maximum)


def _limits(profile: Json) -> tuple[int, int]:
    """Returns the least and the largest capacity of a profile. Raises ArmError."""
    capacity = object_at(profile, "capacity")
    minimum, maximum, default = (
        _whole(capacity, each) for each in ("minimum", "maximum", "default")
    )
    if not minimum <= default <= maximum <= CAPACITY_MAX:
        raise _invalid(
            "capacity", f"write minimum <= default <= maximum, and at most {CAPACITY_MAX}"
        )
    return minimum, maximum


def _change(rule: Json) -> tuple[str, int]:
    """Returns how a rule changes the capacity, and by how much. Raises ArmError."""
    action = object_at(rule, "scaleAction")
    if text_at(action, "direction").lower() not in (*_SIGNS, "none"):
        raise _invalid("scaleAction.direction", "use Increase or Decrease")
    word = text_at(action, "type")
    kind = next((each for each in _CHANGES if each.lower() == word.lower()), None)
    if kind is None:
        raise _invalid("scaleAction.type", f"use one of {', '.join(_CHANGES)}")
    return kind, 1 if action.get("value") is None else _whole(action, "value")


def _whole(values: Json, name: str) -> int:
    """Reads a whole number, which Azure writes as text."""
    text = str(values.get(name))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise wrong_kind(name, "a whole number")
    return int(text)


def _target(properties: Json) -> ResourcePath:
    path = find_path(text_at(properties, "targetResourceUri"))
    if path is None or path.key != _SETS:
        raise not_allowed(
            "Only a scale set can be scaled; the target of this autoscale setting is none."
        )
    return path


def _invalid(name: str, hint: str) -> ArmError:
    return ArmError(400, "BadRequest", f"The value of '{name}' is invalid: {hint}.", target=name)


ROUTES: Routes = {**SETTINGS.routes(), ("POST", TYPE.lower(), "trigger"): trigger}
