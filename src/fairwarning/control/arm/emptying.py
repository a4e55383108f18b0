"""Deletes all machines of a resource group, each in the way of its own type.

What else is kept in the group goes with the group itself, once its last machine has gone.
"""

import dataclasses
from urllib.parse import urlsplit

from fairwarning.control.arm.call import Arm, ArmCall
from fairwarning.control.arm.fleet import machines_in
from fairwarning.control.arm.inventory import MACHINES, SCALE_SETS, scopes_in
from fairwarning.control.arm.paths import resource_id, resource_path
from fairwarning.control.scale_sets import operate_all
from fairwarning.core.model import EventId, OperationKind, Scope, ScopeKind


async def delete_all(arm: Arm, call: ArmCall, group: str) -> list[EventId]:
    """The events of all deletions; when they are over, the group is empty."""
    scopes = [each async for each in scopes_in(arm, call.path.subscription, group)]
    ids = dict.fromkeys(id for scope in scopes for id in _resources(scope))
    events = [event for id in ids for event in await _delete(arm, call, id)]
    for scope in scopes:
        if scope.roster.kind is ScopeKind.CLOUD_SERVICE:
            machines = [(scope.id, each.name) for each in scope.roster.live]
            kind = OperationKind.DELETE
            events += await operate_all(arm.control, machines, kind, by=call.by, why=call.why)
    return list(dict.fromkeys(events))


def _resources(scope: Scope) -> list[str]:
    """What to delete, by id: a scale set takes its machines along."""
    roster = scope.roster
    place = roster.subscription, roster.resource_group
    if roster.kind is ScopeKind.SCALE_SET:
        return [resource_id(*place, SCALE_SETS, roster.resource)]
    return [resource_id(*place, MACHINES, each.instance.name) for each in machines_in(scope)]


async def _delete(arm: Arm, call: ArmCall, id: str) -> tuple[EventId, ...]:
    path = resource_path(id)
    query = {"api-version": call.api_version}
    reply = await arm.answer(
        dataclasses.replace(call, method="DELETE", path=path, query=query, body=None)
    )
    url = urlsplit(reply.headers.get("Azure-AsyncOperation", ""))
    operation = await arm.operations.find(url.path.rpartition("/")[2])
    return () if operation is None else operation.events
