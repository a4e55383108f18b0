"""These handlers get, replace, change and delete the tags of a subscription, group or resource.

The tags are those of the resource itself, so they are read and written through its own handlers.
Only the tags of a subscription are stored here.
"""

from collections import defaultdict

from msgspec.structs import replace as with_fields

from fairwarning.azure_api.api_versions import call_to
from fairwarning.azure_api.body_values import object_at, tags_of, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import resources_in
from fairwarning.azure_api.group_state import iterate_groups
from fairwarning.azure_api.paths import ResourcePath, resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import new_record

TYPE = "Microsoft.Resources/tags"
NAME = "default"
_KEY = TYPE.lower()
Tags = dict[str, str]


async def get(arm: Arm, call: ArmCall) -> Reply:
    _refuse_name(call)
    return _reply(call, await _read(arm, call))


async def create_or_replace(arm: Arm, call: ArmCall) -> Reply:
    _refuse_name(call)
    return _reply(call, await _write(arm, call, _given(call)))


async def update(arm: Arm, call: ArmCall) -> Reply:
    _refuse_name(call)
    operation = text_at(call.body or {}, "operation")
    change = _CHANGES.get(operation.lower())
    if change is None:
        raise ArmError(
            400,
            "InvalidRequestContent",
            f"The operation '{operation[:40]}' is invalid; use Merge, Replace or Delete.",
            target="operation",
        )
    before = await _read(arm, call)
    return _reply(call, await _write(arm, call, change(before, _given(call))))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    _refuse_name(call)
    await _write(arm, call, {})
    return Reply(200)


async def list_names(arm: Arm, call: ArmCall) -> Reply:
    """Lists the names and values of tags that groups and resources of the subscription have."""
    rows = await resources_in(arm, call.path.subscription)
    used = [each.get("tags", {}) for each in rows]
    used += [
        each.record.body.get("tags", {})
        async for each in iterate_groups(arm, call.path.subscription)
        if each.record is not None
    ]
    values: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for tags in used:
        for name, value in tags.items():
            values[name][value] += 1
    place = f"/subscriptions/{call.path.subscription}/tagNames"
    return Reply(200, {"value": [_name_json(place, *each) for each in sorted(values.items())]})


def merged(before: Tags, given: Tags) -> Tags:
    """Returns the tags with the given ones added. Names are compared without regard to case."""
    names = {name.lower(): name for name in before}
    return before | {names.get(name.lower(), name): value for name, value in given.items()}


def reduced(before: Tags, given: Tags) -> Tags:
    """Returns the tags without the given ones. An empty value stands for any value."""
    doomed = {name.lower(): value for name, value in given.items()}
    return {
        name: value for name, value in before.items() if doomed.get(name.lower()) not in ("", value)
    }


_CHANGES = {"merge": merged, "replace": lambda _, given: given, "delete": reduced}


async def _read(arm: Arm, call: ArmCall) -> Tags:
    if _is_subscription(call.path):
        record = await arm.resources.find(call.path.id)
        return {} if record is None else dict(record.body["tags"])
    reply = await arm.answer(_owner_call(call, "GET"))
    assert isinstance(reply.body, dict)
    return dict(reply.body.get("tags") or {})


async def _write(arm: Arm, call: ArmCall, tags: Tags) -> Tags:
    checked = tags_of({"tags": tags})
    if _is_subscription(call.path):
        record = await arm.resources.find(call.path.id) or new_record(
            arm.control.clock.now(), id=call.path.id, type=TYPE, name=NAME, body={}
        )
        await arm.resources.put(with_fields(record, body={"tags": checked}), by=call.by)
    else:
        await arm.answer(_owner_call(call, "PATCH", {"tags": checked}))
    return checked


def _is_subscription(path: ResourcePath) -> bool:
    return path.parent is None and not path.group


def _owner_call(call: ArmCall, method: str, body: Json | None = None) -> ArmCall:
    """Returns the request to the resource that has the tags."""
    owner = call.path.parent or resource_path(call.path.place)
    return call_to(call, owner, method, body)


def _given(call: ArmCall) -> Tags:
    return tags_of(object_at(call.body or {}, "properties"))


def _refuse_name(call: ArmCall) -> None:
    if call.path.name.lower() != NAME:
        raise ArmError(
            400,
            "InvalidResourceName",
            f"The tags of a scope are named 'default', not '{call.path.name[:40]}'.",
        )


def _reply(call: ArmCall, tags: Tags) -> Reply:
    body = {"id": call.path.id, "name": NAME, "type": TYPE, "properties": {"tags": tags}}
    return Reply(200, body)


def _name_json(place: str, name: str, values: dict[str, int]) -> Json:
    return {
        "id": f"{place}/{name}",
        "tagName": name,
        "count": {"type": "Total", "value": sum(values.values())},
        "values": [
            {
                "id": f"{place}/{name}/tagValues/{value}",
                "tagValue": value,
                "count": {"type": "Total", "value": number},
            }
            for value, number in sorted(values.items())
        ],
    }


ROUTES: Routes = {
    ("GET", _KEY, ""): get,
    ("PUT", _KEY, ""): create_or_replace,
    ("PATCH", _KEY, ""): update,
    ("DELETE", _KEY, ""): delete,
    ("GET", "microsoft.resources/subscriptions", "tagnames"): list_names,
}
