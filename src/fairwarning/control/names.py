"""From the names that people use to the one scope or instance that they mean."""

from collections.abc import Iterable

from fairwarning.control.context import Control
from fairwarning.control.problems import Problem
from fairwarning.core.model import InstanceName, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.engine.views import Views

CANDIDATES_MAX = 10


def find_scope(views: Views, name: str) -> ScopeId:
    """By its whole id, an ending of it, or its resource's name. Raises Problem."""
    if views.has_scope(ScopeId(name)):
        return ScopeId(name)
    found = sorted(id for id in views.scopes_called(_last(name)) if _is_meant(id, name))
    if not found:
        raise Problem(
            404,
            "unknown-scope",
            f"there is no scope {name[:100]!r}; `fairwarning fleet show` lists them",
        )
    return _only(name, found)


def find_instance(views: Views, name: str) -> tuple[ScopeId, InstanceName]:
    """By its name, or by `SCOPE/NAME`. Raises Problem."""
    scope_name, _, last = name.rpartition("/")
    members = views.by_name(last)
    if scope_name:
        members = [each for each in members if _is_meant(each.view.scope_id, scope_name)]
    if not members:
        is_scope = any(_is_meant(id, name) for id in views.scopes_called(_last(name)))
        hint = (
            "it is a scope, so name its update domain too, or one of its instances"
            if is_scope
            else "`fairwarning fleet show` lists them"
        )
        raise Problem(404, "unknown-instance", f"there is no instance {name[:100]!r}; {hint}")
    found = sorted(f"{each.view.scope_id}/{each.name}" for each in members)
    scope_id, _, instance = _only(name, found).rpartition("/")
    return ScopeId(scope_id), InstanceName(instance)


async def find_past_scope(control: Control, name: str) -> ScopeId:
    """The same for looking back: by its whole id, also one in which nobody is left."""
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
    """Also one that is gone, if its scope is named."""
    try:
        return find_instance(control.views, name)
    except Problem as problem:
        scope_name, _, last = name.rpartition("/")
        if problem.status != 404 or not scope_name:
            raise
        return await find_past_scope(control, scope_name), InstanceName(last)


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _is_meant(id: str, name: str) -> bool:
    """`SUB/GROUP/kind/resource` or, in a scale set, `…/resource/0`."""
    if id == name or id.endswith(f"/{name}"):
        return True
    whole, _, group = id.rpartition("/")
    return group.isdigit() and "/scale-set/" in id and whole.endswith(f"/{name}")


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
