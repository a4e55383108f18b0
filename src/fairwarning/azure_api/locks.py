"""These handlers create, get, list and delete locks, and refuse what a lock forbids.

A lock on a subscription, group or resource counts for everything in it. CanNotDelete refuses
deletions, and ReadOnly refuses every change. A resource also can't be deleted if something in it is
locked. Locks apply only to requests to ARM. The operator API ignores them.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator

from msgspec.structs import replace as with_fields

from fairwarning.azure_api.api_versions import call_to
from fairwarning.azure_api.body_values import object_at, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.etags import record_tag, refuse_unmatched_record, retried, tag_header
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord, new_record

TYPE = "Microsoft.Authorization/locks"
LEVELS = {each.lower(): each for each in ("CanNotDelete", "ReadOnly")}
NOTES_CHARS_MAX = 512
_KEY = TYPE.lower()
_READING_ACTIONS = frozenset({
    ("microsoft.resources/deployments", "validate"),
    ("microsoft.resources/deployments", "whatif"),
})  # fmt: skip
_SETS = "microsoft.compute/virtualmachinescalesets"


async def create_or_update(arm: Arm, call: ArmCall) -> Reply:
    body = _body(call)
    if call.path.parent is not None:
        await _refuse_missing(arm, call, call.path.parent)
    before = await arm.resources.find(call.path.id)
    refuse_unmatched_record(call, before)
    record = before or new_record(
        arm.control.clock.now(), id=call.path.id, type=TYPE, name=call.path.name, body=body
    )
    record = await arm.resources.put(with_fields(record, body=body), by=call.by)
    return Reply(201 if before is None else 200, _json(record), tag_header(record_tag(record)))


async def get(arm: Arm, call: ArmCall) -> Reply:
    record = await arm.resources.find(call.path.id)
    if record is None:
        raise ArmError(404, "LockNotFound", f"The lock '{call.path.name}' could not be found.")
    return Reply(200, _json(record), tag_header(record_tag(record)))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    record = await arm.resources.find(call.path.id)
    refuse_unmatched_record(call, record)
    if record is None:
        return Reply(204)
    await arm.resources.delete(record, by=call.by)
    return Reply(200)


async def list_locks(arm: Arm, call: ArmCall) -> Reply:
    """Lists the locks of a scope and of everything in it.

    With `$filter=atScope()`, it lists the locks of the scope itself and those that it inherits.
    """
    scope = _scope_of(call.path)
    if call.query.get("$filter", "").replace(" ", "").lower() == "atscope()":
        found = [each for above in _and_above(scope) async for each in _locks_on(arm, above)]
    else:
        found = [each async for each in arm.resources.list_below(scope) if each.type == TYPE]
    return Reply(200, {"value": [_json(each) for each in found]})


async def refuse_locked(arm: Arm, call: ArmCall) -> None:
    """Raises ArmError if a lock forbids the request."""
    verb = _verb(call)
    if not verb:
        return
    path = call.path
    target = path.id if path.types or path.parent else path.place
    locked = [each for above in _and_above(target) async for each in _locks_on(arm, above)]
    if call.method == "DELETE":
        locked += [each async for each in _locks_in(arm, target)]
    refuse_scopes(target, verb, [each for each in locked if verb == "delete" or _is_strict(each)])


async def locks_on_parts(arm: Arm, whole: str, parts: Collection[str]) -> list[ResourceRecord]:
    """Returns the locks on exactly these parts of the resource `whole`."""
    wanted = {each.lower() for each in parts}
    return [each async for each in _locks_in(arm, whole) if _scope_of_id(each.id).lower() in wanted]


async def own_locks(arm: Arm, ids: Iterable[str]) -> list[ResourceRecord]:
    """Returns the locks on exactly these resources, without those that they inherit."""
    return [each for id in ids async for each in _locks_on(arm, id)]


def refuse_scopes(target: str, verb: str, locks: list[ResourceRecord]) -> None:
    """Raises ArmError, which names the locked scopes, if there are locks."""
    if locks:
        scopes = "', '".join(dict.fromkeys(_scope_of_id(each.id) for each in locks))
        raise ArmError(
            409,
            "ScopeLocked",
            f"The scope '{target}' cannot perform {verb} operation because following scope(s) are "
            f"locked: '{scopes}'. Please remove the lock and try again.",
        )


def _verb(call: ArmCall) -> str:
    """Returns `delete` or `write`, or an empty string if locks do not matter to the request."""
    path = call.path
    if call.method in ("GET", "HEAD") or path.key == _KEY:
        return ""
    if (path.key, path.tail) in _READING_ACTIONS or path.tail == "register":
        return ""
    # On Azure, a POST that deletes instances counts as an action. Here a lock keeps them too.
    is_delete = call.method == "DELETE" or (path.key == _SETS and path.tail == "delete")
    return "delete" if is_delete else "write"


def _is_strict(lock: ResourceRecord) -> bool:
    return object_at(lock.body, "properties").get("level") == "ReadOnly"


def _and_above(id: str) -> Iterator[str]:
    """Yields the ids of the resource and of all that contain it, the largest first.

    Ids are pairs of words. A pair that begins with `providers` names a namespace and no scope.
    """
    parts = id.strip("/").split("/")
    for end in range(2, len(parts) + 1, 2):
        if parts[end - 2].lower() != "providers":
            yield "/" + "/".join(parts[:end])


async def _locks_on(arm: Arm, scope: str) -> AsyncIterator[ResourceRecord]:
    async for each in arm.resources.list_below(f"{scope}/providers/{TYPE}"):
        yield each


async def _locks_in(arm: Arm, scope: str) -> AsyncIterator[ResourceRecord]:
    own = f"{scope}/providers/{TYPE}/".lower()
    async for each in arm.resources.list_below(scope):
        if each.type == TYPE and not each.id.lower().startswith(own):
            yield each


def _scope_of(path: ResourcePath) -> str:
    return path.parent.id if path.parent else path.place


def _scope_of_id(lock_id: str) -> str:
    at = lock_id.lower().rindex(f"/providers/{_KEY}/")
    return lock_id[:at]


async def _refuse_missing(arm: Arm, call: ArmCall, parent: ResourcePath) -> None:
    """Raises ArmError if the resource that is to be locked does not exist."""
    await arm.answer(call_to(call, parent, "GET"))


def _body(call: ArmCall) -> Json:
    level = text_at(call.body or {}, "properties", "level")
    if level.lower() not in LEVELS:
        raise ArmError(
            400,
            "InvalidRequestContent",
            f"The lock level '{level[:40]}' is invalid; use CanNotDelete or ReadOnly.",
            target="properties.level",
        )
    notes = text_at(call.body or {}, "properties", "notes")
    if len(notes) > NOTES_CHARS_MAX:
        raise ArmError(
            400,
            "InvalidRequestContent",
            f"The notes of a lock have at most {NOTES_CHARS_MAX} characters.",
            target="properties.notes",
        )
    properties = {"level": LEVELS[level.lower()], **({"notes": notes} if notes else {})}
    return {"properties": properties}


def _json(record: ResourceRecord) -> Json:
    return {**record.body, "id": record.id, "type": TYPE, "name": record.name}


ROUTES: Routes = {
    ("GET", "microsoft.authorization", "locks"): list_locks,
    ("PUT", _KEY, ""): retried(create_or_update),
    ("GET", _KEY, ""): get,
    ("DELETE", _KEY, ""): retried(delete),
}
