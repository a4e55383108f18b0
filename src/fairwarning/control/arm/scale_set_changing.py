"""A PUT or PATCH of a scale set that is there: what was said changes, the rest stays."""

from collections.abc import Sequence

from msgspec.structs import replace

from fairwarning.control import scale_sets
from fairwarning.control.arm.bodies import refuse_moved
from fairwarning.control.arm.call import Arm, ArmCall, Json
from fairwarning.control.arm.instance_changes import revise
from fairwarning.control.arm.kept_scale_sets import Standing, needed, new_kept, refuse_going
from fairwarning.control.arm.merging import merged, without_read_only
from fairwarning.control.arm.profiles import policy_of
from fairwarning.control.arm.scale_set_creating import addresses_for, let_go
from fairwarning.control.arm.scale_set_json import true_body
from fairwarning.control.arm.scale_set_reading import Wanted, refuse_changed, wanted_of
from fairwarning.core.identifiers import prefix_of
from fairwarning.core.model import EventId, Instance, InstanceName, Policy


async def change(arm: Arm, call: ArmCall, found: Standing, said: Json) -> Standing:
    """Raises ArmError, Refused or Problem."""
    refuse_going(found)
    before = true_body(found)
    body = merged(before, said)
    was, wanted = wanted_of(before), wanted_of(body)
    refuse_moved(found.roster.resource, call.path.group, was.location, wanted.location)
    refuse_changed(was, wanted)
    policy = policy_of(without_read_only(said).get("properties") or {}, found.roster.policy)
    addresses = await addresses_for(arm, call, wanted, wanted.capacity - was.capacity)
    try:
        await _change_rules(arm, call, found, policy, was, wanted)
        await _change_prefix(arm, call, found, wanted.computer_name_prefix)
        events = await _resize(arm, call, found, was, wanted, addresses)
        # Not before: who leaves keeps the notice that it was made with.
        if wanted.mode != "Manual":
            await scale_sets.upgrade(arm.control, found.groups, None, by=call.by, why=call.why)
    finally:
        await let_go(arm, call, addresses)
    operation = await arm.operations.begin(call, verb="update", target=found.id, events=events)
    kept = found.kept or new_kept(found, arm.control.clock.now())
    kept = replace(kept, body=body, is_going=False, operation=operation.id)
    await arm.shelf.put(kept, by=call.by)
    return await needed(arm, call.path)


async def _change_rules(
    arm: Arm, call: ArmCall, found: Standing, policy: Policy, was: Wanted, wanted: Wanted
) -> None:
    control, roster = arm.control, found.roster
    if policy != roster.policy:
        await scale_sets.change_policy(control, found.groups, policy, by=call.by, why=call.why)
    is_same = was.fingerprint == wanted.fingerprint
    profile = roster.model.profile if is_same else wanted.fingerprint
    if not is_same or was.terms != wanted.terms:
        await scale_sets.change_model(
            control,
            found.groups,
            terminate_notice_ms=wanted.terms.terminate_notice_ms,
            reimage_notice_ms=wanted.terms.reimage_notice_ms,
            profile=profile,
            by=call.by,
            why=call.why,
        )


async def _change_prefix(arm: Arm, call: ArmCall, found: Standing, prefix: str) -> None:
    for scope in found.groups:
        if prefix and prefix_of(scope.roster) != prefix:
            await revise(arm, call, scope.id, lambda r: replace(r, computer_name_prefix=prefix))


async def _resize(
    arm: Arm,
    call: ArmCall,
    found: Standing,
    was: Wanted,
    wanted: Wanted,
    addresses: Sequence[str],
) -> tuple[EventId, ...]:
    """The events of those who go."""
    if wanted.capacity == was.capacity:
        return ()
    pattern = Instance(
        name=InstanceName("any"),
        tags=wanted.tags,
        priority=wanted.priority,
        eviction=wanted.eviction,
    )
    resized = await scale_sets.resize(
        arm.control,
        found.groups,
        wanted.capacity,
        addresses=addresses,
        pattern=pattern,
        by=call.by,
        why=call.why,
    )
    return resized.events
