"""Finds the scope, resource or instance that has a given name."""

from collections.abc import Iterable

from fairwarning.core.model import InstanceName, Scope, ScopeId
from fairwarning.core.new_events import deleted_instance
from fairwarning.core.refusals import Refused
from fairwarning.core.scope_names import is_meant, resource_of
from fairwarning.engine.document_views import Views
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.problems import Problem, of_refusal
from fairwarning.operator_api.scale_sets import groups_of

CANDIDATES_MAX = 10  # An error message stays readable.


def find_scope(views: Views, name: str) -> ScopeId:
    """Find a scope by its id, the end of its id, or its resource's name.

    Raises Problem if there is none, or more than one.
    """
    if views.has_scope(ScopeId(name)):
        return ScopeId(name)
    found = sorted(id for id in views.scopes_called(_last(name)) if is_meant(id, name))
    if not found:
        raise _no_scope(name)
    return _only(name, found)


def find_scopes(views: Views, name: str) -> list[ScopeId]:
    """Find a scope like `find_scope`, or all placement groups of a scale set by the set's name.

    Raises Problem if there is none, or if several resources have this name.
    """
    if views.has_scope(ScopeId(name)):
        return [ScopeId(name)]
    found = [id for id in views.scopes_called(_last(name)) if is_meant(id, name)]
    if not found:
        raise _no_scope(name)
    meant = _only(name, sorted({resource_of(id) for id in found}))
    groups = sorted(id for id in found if resource_of(id) == meant)
    return sorted(groups, key=len)  # The tenth placement group comes after the second.


def find_instance(views: Views, name: str) -> tuple[ScopeId, InstanceName]:
    """Find an instance by its name or by `SCOPE/NAME`.

    Raises Problem if there is none, or more than one.
    """
    scope_name, _, last = name.rpartition("/")
    members = views.by_name(last)
    if scope_name:
        members = [each for each in members if is_meant(each.view.scope_id, scope_name)]
    if not members:
        raise _no_instance(views, name)
    found = sorted(f"{each.view.scope_id}/{each.name}" for each in members)
    scope_id, _, instance = _only(name, found).rpartition("/")
    return ScopeId(scope_id), InstanceName(instance)


async def find_resource(control: Control, name: str) -> list[Scope]:
    """Return all scopes of a resource; a scale set has one for each placement group.

    Raises Problem if there is no such resource, or more than one.
    """
    found = [id for id in control.views.scopes_called(_last(name)) if is_meant(id, name)]
    first = {resource_of(id): id for id in sorted(found, reverse=True)}
    if not first:
        raise _no_scope(name)
    meant = _only(name, sorted(first))
    return await groups_of(control, await control.store.read(first[meant]))


async def find_past_scope(control: Control, name: str) -> ScopeId:
    """Find a scope like `find_scope`. A scope that is gone is found by its whole id."""
    try:
        return find_scope(control.views, name)
    except Problem as problem:
        if problem.status != 404:
            raise
        try:
            return (await control.store.read(ScopeId(name))).id
        except Refused:
            raise problem from None


async def find_past_instance(control: Control, name: str) -> tuple[ScopeId, InstanceName]:
    """Find an instance like `find_instance`. A deleted one is found by `SCOPE/NAME`."""
    try:
        return find_instance(control.views, name)
    except Problem as problem:
        scope_name, _, last = name.rpartition("/")
        if problem.status != 404 or not scope_name:
            raise
        return await find_past_scope(control, scope_name), InstanceName(last)


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _no_instance(views: Views, name: str) -> Problem:
    scope_name, _, last = name.rpartition("/")
    if any(is_meant(id, name) for id in views.scopes_called(last)):
        hint = "it is a scope, so name its update domain too, or one of its instances"
        return Problem(404, "unknown-instance", f"there is no instance {name[:100]!r}; {hint}")
    for id in views.deleted(last):
        if not scope_name or is_meant(id, scope_name):
            return of_refusal(deleted_instance(id, InstanceName(last)))
    return Problem(
        404,
        "unknown-instance",
        f"there is no instance {name[:100]!r}; `fairwarning fleet show` lists them",
    )


def _no_scope(name: str) -> Problem:
    return Problem(
        404,
        "unknown-scope",
        f"there is no scope {name[:100]!r}; `fairwarning fleet show` lists them",
    )


def _only(name: str, found: Iterable[str]) -> ScopeId:
    candidates = list(found)
    if len(candidates) > 1:
        shown = candidates[:CANDIDATES_MAX]
        raise Problem(
            409,
            "ambiguous-name",
            f"{name[:100]!r} fits {len(candidates)}: {', '.join(shown)}; write more of it",
            candidates=shown,
        )
    return ScopeId(candidates[0])
