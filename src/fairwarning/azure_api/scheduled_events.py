"""These handlers get, list and acknowledge (approve) scheduled events."""

import re
from collections.abc import AsyncIterator
from typing import NamedTuple

from fairwarning.azure_api.discovery import TENANT_ID
from fairwarning.azure_api.errors import ArmError, Failure, not_found
from fairwarning.azure_api.fleet_view import find_vm, scopes_of_resource
from fairwarning.azure_api.lists import list_reply
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.core.document import visible_events
from fairwarning.core.model import Event, EventId, InstanceName, Phase, Scope, ScopeId, ScopeKind
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.protocols import Choice, Mark
from fairwarning.notifications.event_grid import azure_id, owner_id, properties_of

IDS_MAX = 100
PAGE = 200
APPROVED = "Successfully approved scheduled event"
ALL_APPROVED = "Successfully approved all Scheduled Events in the list"
UNKNOWN = "Scheduled event not found"
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SETS = {
    "availabilitysets": ScopeKind.AVAILABILITY_SET,
    "virtualmachinescalesets": ScopeKind.SCALE_SET,
}


class ListedEvent(NamedTuple):
    scope_id: ScopeId
    location: str
    event: Event


async def acknowledge(arm: Arm, call: ArmCall) -> Reply:
    id = _event_id(call.path.name)
    known = {each.event.id for each in await _events_of(arm, _owner(call))}
    if not await _approve(arm, call, id, known):
        raise _unknown()
    return Reply(200, {"value": APPROVED})


async def acknowledge_all(arm: Arm, call: ArmCall) -> Reply:
    ids = _read_ids(call)
    known = {each.event.id for each in await _events_of(arm, _owner(call))}
    done = {id: await _approve(arm, call, id, known) for id in ids}
    if all(done.values()):
        return Reply(200, {"value": ALL_APPROVED})
    if not any(done.values()):
        raise _unknown()
    failure = Failure(
        code="MultiStatusResponse",
        message="The operation returned different statuses for the Scheduled Events. Review each "
        "event's result for details.",
        details=tuple(
            Failure(code="OK", message=APPROVED, target=id)
            if is_done
            else Failure(code="NotFound", message=UNKNOWN, target=id)
            for id, is_done in done.items()
        ),
    )
    return Reply(207, {"error": failure.json()})


async def list_scheduled_events(arm: Arm, call: ArmCall) -> Reply:
    path = call.path
    if path.parent is not None:
        found = await _events_of(arm, path.parent)
    else:
        found = [each async for each in _events_in(arm, path.subscription, path.group)]
    return await list_reply(call, [event_json(each) for each in found])


async def get(arm: Arm, call: ArmCall) -> Reply:
    id = _event_id(call.path.name)
    for each in await _events_of(arm, _owner(call)):
        if each.event.id == id:
            return Reply(200, event_json(each))
    raise _unknown()


def event_json(listed: ListedEvent) -> Json:
    """Renders an event as a row of Resource Graph's table `maintenanceresources`."""
    subscription, group, *_ = listed.scope_id.split("/")
    return {
        "id": azure_id(listed.scope_id, listed.event.id),
        "name": listed.event.id,
        "type": "microsoft.maintenance/scheduledevents",
        "tenantId": TENANT_ID,
        "location": listed.location,
        "resourceGroup": group,
        "subscriptionId": subscription,
        "properties": {
            **properties_of(listed.event),
            "TargetResourceId": owner_id(listed.scope_id),
        },
    }


async def _approve(arm: Arm, call: ArmCall, id: EventId, known: set[EventId]) -> bool:
    """Approves an event. Returns False if there is no such event or if it is over."""
    if id not in known:
        return False
    try:
        await arm.control.engine.approve(id, by=call.by, why=call.why)
    except Refused as refused:
        if refused.code is Code.EVENT_FINISHED:
            return False
        raise
    return True


async def _events_of(arm: Arm, owner: ResourcePath) -> list[ListedEvent]:
    """Returns the events that the instances of the resource see now.

    For a VM in a set, these are only the events that name the VM. Raises ArmError if there is no
    such resource.
    """
    is_one = owner.namespace == "Microsoft.Compute" and len(owner.types) == 1
    type = owner.types[0].lower() if is_one else ""
    place = owner.subscription, owner.group, owner.name
    if type == "virtualmachines":
        vm = await find_vm(arm, *place)
        if vm is None:
            raise not_found(owner.type, owner.name, owner.group)
        return _visible_in(vm.scope, vm.instance.name)
    if type not in _SETS:
        raise _bad_request(
            f"The resource type '{owner.type}' has no scheduled events; use virtualMachines, "
            "virtualMachineScaleSets or availabilitySets."
        )
    scopes = await scopes_of_resource(arm, _SETS[type], *place)
    is_there = any(each.roster.live for each in scopes) or await arm.resources.find(owner.id)
    if not is_there:
        raise not_found(owner.type, owner.name, owner.group)
    return [listed for scope in scopes for listed in _visible_in(scope)]


def _visible_in(scope: Scope, name: InstanceName | None = None) -> list[ListedEvent]:
    return [
        ListedEvent(scope.id, scope.roster.location, each)
        for each in visible_events(scope)
        if name is None or name in each.resources
    ]


async def _events_in(arm: Arm, subscription: str, group: str) -> AsyncIterator[ListedEvent]:
    """Yields the events of a group, or of the whole subscription if `group` is empty.

    It searches the events and not the scopes, because most scopes have no event.
    """
    start = f"{subscription}/{group}/" if group else f"{subscription}/"
    locations: dict[ScopeId, str] = {}
    choice = Choice(phases=(Phase.SCHEDULED, Phase.STARTED))
    before: Mark | None = None
    while page := await arm.control.store.events(choice, before=before, limit=PAGE):
        for scope_id, event in page:
            if event.announced and scope_id.lower().startswith(start.lower()):
                if scope_id not in locations:
                    scope = await arm.control.store.read(scope_id)
                    locations[scope_id] = scope.roster.location
                yield ListedEvent(scope_id, locations[scope_id], event)
        last = page[-1][1]
        before = Mark(created_ms=last.created_ms, event_id=last.id)


def _owner(call: ArmCall) -> ResourcePath:
    if call.path.parent is None:
        raise _bad_request("Name the resource whose scheduled event it is, before /providers.")
    return call.path.parent


def _read_ids(call: ArmCall) -> list[EventId]:
    ids = (call.body or {}).get("value")
    if not isinstance(ids, list) or not ids or not all(isinstance(each, str) for each in ids):
        raise _bad_request('The body must be {"value": ["id of a scheduled event", …]}.')
    if len(ids) > IDS_MAX:
        raise _bad_request(f"The list has {len(ids)} ids; send at most {IDS_MAX} at once.")
    return list(dict.fromkeys(_event_id(each) for each in ids))


def _event_id(text: str) -> EventId:
    if not _GUID.fullmatch(text):
        raise _bad_request(f"The scheduled event id '{text[:100]}' is no GUID.")
    return EventId(text.upper())


def _bad_request(message: str) -> ArmError:
    return ArmError(400, "BadRequest", message)


def _unknown() -> ArmError:
    return ArmError(404, "InvalidScheduledEventId", UNKNOWN)


_KEY = "microsoft.maintenance/scheduledevents"
ROUTES: Routes = {
    ("POST", _KEY, "acknowledge"): acknowledge,
    ("POST", "microsoft.maintenance", "scheduledevents"): acknowledge_all,
    ("GET", "microsoft.maintenance", "scheduledevents"): list_scheduled_events,
    ("GET", _KEY, ""): get,
}
