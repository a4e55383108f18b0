"""Refuses declarations that only an admin may make.

Only an admin may set what a driver or a hook runs and on which machine it acts, because both have
the rights of the server. Only an admin may remove a driver, because then nothing carries out
impacts, or a hook, because it may protect something. Only an admin may declare a test fleet,
because minimum notices do not apply there.
"""

from collections.abc import Iterable, Mapping, Sequence

from fairwarning.core.model import Instance, Roster, Scope, ScopeId, ScopeKind
from fairwarning.core.roster import resource_key
from fairwarning.fleet_file.model import Plan, Step
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.problems import Problem

SIMULATED = "simulated"
Owners = Mapping[str, Sequence[ScopeId]]
"""Maps the name of each machine to the scopes that have an instance on it."""
_Driver = tuple[str, Mapping[str, str]]


def refuse_plan_of_operator(caller: Caller, planned: Plan, current: Sequence[Scope]) -> None:
    """Raises Problem if only an admin may carry out the plan. `current` is all scopes."""
    if caller.role >= Role.ADMIN:
        return
    owners: Owners = {}
    for step in planned.declares:
        _refuse_driver(step)
        _refuse_hooks(step)
        _refuse_test(step.before, step.roster)
        _refuse_handles(step)
        newcomers = [
            each for each in step.roster.live if not step.before.roster.has_live(each.name)
        ]
        # The instance names of a scale set follow from its own name, and an admin set its driver.
        is_chosen = step.roster.kind is not ScopeKind.SCALE_SET
        if is_chosen and needs_ownership_check(caller, step.roster):
            owners = owners or owners_of_machines(current)
            refuse_machines_of_others(step.scope_id, step.roster, newcomers, owners)
    known = _drivers(current) if planned.creates else {}
    for scope in planned.creates:
        _refuse_new_driver(scope, known)
        _refuse_new_hooks(scope, current)


def needs_ownership_check(caller: Caller, roster: Roster) -> bool:
    """Return whether the caller is not an admin and the roster has a real driver or hooks."""
    return caller.role < Role.ADMIN and _acts_on_machines(roster)


def _acts_on_machines(roster: Roster) -> bool:
    return roster.driver != SIMULATED or bool(roster.hooks)


def owners_of_machines(current: Iterable[Scope]) -> Owners:
    found: dict[str, list[ScopeId]] = {}
    for scope in current:
        for each in scope.roster.live:
            found.setdefault(machine_of(each), []).append(scope.id)
    return found


def refuse_machines_of_others(
    scope_id: ScopeId,
    roster: Roster,
    newcomers: Iterable[Instance],
    owners: Owners,
) -> None:
    """Raises Problem if the driver would act on a machine of another scope."""
    for each in newcomers:
        machine = machine_of(each)
        others = [id for id in owners.get(machine, ()) if id != scope_id]
        if others:
            raise Problem(
                403,
                "handle-needs-admin",
                f"instance {each.name!r} of {scope_id} would have the driver {roster.driver!r} act "
                f"on {machine!r}, which is a machine of {others[-1]}; choose another name, or "
                "ask an admin",
            )


def machine_of(instance: Instance) -> str:
    """Return the name of the machine that a driver acts on for this instance."""
    return instance.handle or instance.name


def _refuse_driver(step: Step) -> None:
    before, after = step.before.roster, step.roster
    if (before.driver, before.driver_settings) == (after.driver, after.driver_settings):
        return
    if not step.says_driver:
        raise Problem(
            403,
            "driver-needs-admin",
            f"{step.scope_id} has the driver {before.driver!r} and this file names none; write the "
            "driver into the file as it is, or ask an admin",
        )
    raise _driver_needs_admin(step.scope_id, after.driver)


def _drivers(current: Iterable[Scope]) -> dict[object, list[_Driver]]:
    """Return the drivers of each resource. The keys are those of `resource_key`."""
    found: dict[object, list[_Driver]] = {}
    for scope in current:
        driver = (scope.roster.driver, scope.roster.driver_settings)
        of_resource = found.setdefault(resource_key(scope.roster), [])
        if driver not in of_resource:
            of_resource.append(driver)
    return found


def _refuse_new_driver(scope: Scope, known: Mapping[object, list[_Driver]]) -> None:
    """Raises Problem for a driver that the scope's resource does not have yet.

    A new resource may have only `simulated`.
    """
    roster = scope.roster
    driver = (roster.driver, roster.driver_settings)
    if driver not in known.get(resource_key(roster), [(SIMULATED, {})]):
        raise _driver_needs_admin(scope.id, roster.driver)


def _driver_needs_admin(scope_id: ScopeId, driver: str) -> Problem:
    return Problem(
        403,
        "driver-needs-admin",
        f"{scope_id} would get the driver {driver!r}, and only an admin may set or change one: a "
        "driver acts on the server's behalf; leave it as it is, or ask an admin",
    )


def _refuse_hooks(step: Step) -> None:
    before, after = step.before.roster, step.roster
    if before.hooks == after.hooks:
        return
    if not after.hooks:
        raise Problem(
            403,
            "hooks-need-admin",
            f"{step.scope_id} has hooks and would lose them; write the hooks into the file as they "
            "are, or ask an admin",
        )
    raise _hooks_need_admin(step.scope_id)


def _refuse_new_hooks(scope: Scope, current: Iterable[Scope]) -> None:
    """Raises Problem for hooks that the scope's resource does not have yet."""
    if not scope.roster.hooks:
        return
    key = resource_key(scope.roster)
    known = (each.roster.hooks for each in current if resource_key(each.roster) == key)
    if scope.roster.hooks not in known:
        raise _hooks_need_admin(scope.id)


def _hooks_need_admin(scope_id: ScopeId) -> Problem:
    return Problem(
        403,
        "hooks-need-admin",
        f"{scope_id} would get other hooks, and only an admin may set or change them: a hook acts "
        "on the server's behalf; leave them as they are, or ask an admin",
    )


def _refuse_test(before: Scope, after: Roster) -> None:
    if after.test and not before.roster.test and before.roster.live:
        raise Problem(
            403,
            "test-needs-admin",
            f"{before.id} has instances and would become a test fleet, where the minimum notices "
            "do not hold; only an admin may do that; leave `test` as it is, or ask an admin",
        )


def _refuse_handles(step: Step) -> None:
    """Raises Problem if a handle changes, or if that of a new instance is not its name."""
    if not _acts_on_machines(step.roster):
        return
    known = step.before.roster.instances
    for each in step.roster.live:
        usual = machine_of(known[each.name]) if each.name in known else each.name
        if machine_of(each) != usual:
            raise Problem(
                403,
                "handle-needs-admin",
                f"the driver {step.roster.driver!r} of {step.scope_id} would act on "
                f"{machine_of(each)!r} for instance {each.name!r} instead of {usual!r}, and only "
                "an admin may say which machine a driver acts on; leave the handle as it is, or "
                "ask an admin",
            )
