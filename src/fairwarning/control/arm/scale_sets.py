"""Scale sets: made, shown, changed and deleted."""

from fairwarning.control.arm import listing, scale_set_actions
from fairwarning.control.arm.bodies import object_at, said
from fairwarning.control.arm.call import Arm, ArmCall, Json, Reply, Routes
from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.instance_views import set_view_json
from fairwarning.control.arm.kept_scale_sets import TYPE, Standing, all_of, needed, standing
from fairwarning.control.arm.locks import locked
from fairwarning.control.arm.operations import accepted, lro_headers
from fairwarning.control.arm.profiles import refuse_too_new
from fairwarning.control.arm.scale_set_changing import change
from fairwarning.control.arm.scale_set_creating import create
from fairwarning.control.arm.scale_set_deleting import delete
from fairwarning.control.arm.scale_set_json import set_json

_KEY = TYPE.lower()


async def shown(arm: Arm, call: ArmCall) -> Reply:
    return Reply(200, set_json(await needed(arm, call.path), call))


async def all_shown(arm: Arm, call: ArmCall) -> Reply:
    sets = all_of(arm, call.path.subscription, call.path.group)
    return await listing.listed(call, [set_json(each, call) async for each in sets])


async def view_shown(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    return Reply(200, set_view_json(found.groups))


async def put(arm: Arm, call: ArmCall) -> Reply:
    """Makes it, or merges what is said into what is there."""
    body = _body(call)
    async with locked(arm, call, _lock(call)) as own:
        found = await standing(own, call.path)
        if found is None:
            return _changed(call, await create(own, call, body), 201)
        return _changed(call, await change(own, call, found, body), 200)


async def patched(arm: Arm, call: ArmCall) -> Reply:
    body = _body(call)
    async with locked(arm, call, _lock(call)) as own:
        found = await needed(own, call.path)
        return _changed(call, await change(own, call, found, body), 200)


async def deleted(arm: Arm, call: ArmCall) -> Reply:
    async with locked(arm, call, _lock(call)) as own:
        found = await standing(own, call.path)
        if found is None:
            return Reply(204)
        operation = await delete(own, call, found)
        return accepted(call, operation, found.roster.location)


def _body(call: ArmCall) -> Json:
    if call.body is None:
        raise ArmError(
            400, "InvalidRequestContent", "The request content was empty; send a JSON object."
        )
    body = said(call.body)
    refuse_too_new(call, object_at(body, "properties"))
    return body


def _lock(call: ArmCall) -> str:
    """Not the one of resizing, which is taken inside of this."""
    return f"arm{call.path.id.lower()}"


def _changed(call: ArmCall, found: Standing, status: int) -> Reply:
    assert found.operation is not None, "a change has just begun one"
    headers = lro_headers(call, found.operation, found.roster.location)
    return Reply(status, set_json(found, call), headers)


ROUTES: Routes = {
    **scale_set_actions.ROUTES,
    ("GET", "microsoft.compute", "virtualmachinescalesets"): all_shown,
    ("GET", _KEY, ""): shown,
    ("GET", _KEY, "instanceview"): view_shown,
    ("PUT", _KEY, ""): put,
    ("PATCH", _KEY, ""): patched,
    ("DELETE", _KEY, ""): deleted,
}
