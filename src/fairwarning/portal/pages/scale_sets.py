"""The pages of scale sets: list, create, resize, change and upgrade them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from fairwarning.core.model import Scope
from fairwarning.core.refusals import Refused
from fairwarning.core.resources import (
    DEFAULT_LOCATION,
    DEFAULT_RESOURCE_GROUP,
    Orchestration,
    ScaleSet,
    expand,
)
from fairwarning.core.scale_sets import members, set_id
from fairwarning.fleet_file.problems import FleetProblem
from fairwarning.fleet_file.read import read_json
from fairwarning.operator_api import schemas
from fairwarning.operator_api.problems import Problem, of_refusal
from fairwarning.operator_api.resolve_names import find_resource
from fairwarning.operator_api.routes.resources import Resources
from fairwarning.operator_api.to_schema import scope_of
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.row_pages import instance_rows

_SCOPE = "/scopes/{scope:path}"
SETS_SHOWN = 25  # A row has 12 elements, and a page is to have at most 600.
BEHIND_SHOWN = 20  # All of them can be upgraded at once.
EVENTS_SHOWN = 10  # The recent ones; the list of events has all.
DEFAULTS = {"name": "", "resource_group": DEFAULT_RESOURCE_GROUP, "location": DEFAULT_LOCATION,
            "capacity": "2", "orchestration": "uniform", "priority": "Regular",
            "update_domains": "5", "termination": "off", "delay": "5"}  # fmt: skip
NAMES_SHOWN = 5  # Enough to see how instances are named.


async def list_scale_sets(context: PageContext) -> Response:
    found: Resources = await context.ask(
        "GET",
        "/resources",
        query={"kind": "scale-set", "limit": SETS_SHOWN, "after": context.query.get("after")},
    )
    return await context.show("scale_sets.html", sets=found.resources, next=found.next)


async def new(context: PageContext) -> Response:
    return await _form(context, DEFAULTS)


async def review(context: PageContext) -> Response:
    """Show what would be created, before anything is created."""
    said = {**DEFAULTS, **context.form}
    if "change" in context.form:
        return await _form(context, said)
    try:
        declared = _declared(said)
        scopes = _expanded(context, declared)
        await _refuse_existing(context, declared)
    except (Problem, Refused) as wrong:
        return await _form(context, said, wrong)
    names = [name for scope in scopes for name in scope.roster.instances]
    return await context.show(
        "scale_set_review.html",
        said_in_form=said,
        fields={name: said[name] for name in [*DEFAULTS, "test"] if name in said},
        groups=len(scopes),
        names=names[:NAMES_SHOWN],
        names_left_out=len(names) - len(names[:NAMES_SHOWN]),
        is_numbered=declared["orchestration"] == Orchestration.UNIFORM,
    )


async def create(context: PageContext) -> Response:
    said = {**DEFAULTS, **context.form}
    try:
        declared = _declared(said)
        body = {"test": "test" in context.form, "scale_set": [declared]}
        await context.ask("POST", "/fleet", query={"create": True}, body=body)
    except (Problem, Refused) as wrong:
        return await _form(context, said, wrong)
    name = f"{declared['resource_group']}/scale-set/{declared['name']}"
    return context.go(
        f"/scale-sets/{quote(name)}", said=context.t("scale-set.made", name=said["name"])
    )


async def _form(
    context: PageContext, said: Mapping[str, str], wrong: Problem | Refused | None = None
) -> Response:
    """Show the form. If the name is taken, the message is beside the field of the name."""
    if wrong is None:
        return await context.show("scale_set_new.html", said_in_form=said, wrong="", taken="")
    problem = wrong if isinstance(wrong, Problem) else of_refusal(wrong)
    is_taken = problem.status == 409
    return await context.show(
        "scale_set_new.html",
        409 if is_taken else 422,
        said_in_form=said,
        wrong="" if is_taken else problem.detail,
        taken=problem.detail if is_taken else "",
    )


def _expanded(context: PageContext, declared: Mapping[str, Any]) -> Sequence[Scope]:
    """Return the scopes that the declaration creates. Raises Problem or Refused if it is wrong."""
    try:
        fleet = read_json({"scale_set": [declared]}, context.control.drivers, is_partial=True)
    except FleetProblem as wrong:
        raise Problem(422, "form-invalid", wrong.message) from None
    (resource,) = fleet.resources
    capacity = declared["capacity"]
    if declared["orchestration"] == Orchestration.FLEXIBLE and isinstance(resource, ScaleSet):
        # The real suffixes are made when the set is.
        resource = replace(resource, suffixes=tuple(f"{n:08x}" for n in range(capacity)))
    return expand(resource)


async def _refuse_existing(context: PageContext, declared: Mapping[str, Any]) -> None:
    name = f"{declared['resource_group']}/scale-set/{declared['name']}"
    try:
        await find_resource(context.control, name)
    except Problem as unknown:
        if unknown.status == 404:
            return
    raise Problem(
        409,
        "scope-exists",
        f"there is a scale set {declared['name']!r} in {declared['resource_group']!r} already; "
        "choose another name, or change that set on its own page",
    )


async def get_scale_set(context: PageContext) -> Response:
    groups = await find_resource(context.control, context.names["scope"])
    behind = [
        instance
        for scope, instance in members(groups)
        if not scope.roster.latest_model_applied(instance)
    ]
    events: schemas.Events = await context.ask(
        "GET", "/events", query={"scope": groups[0].id, "limit": EVENTS_SHOWN}
    )
    return await context.show(
        "scale_set.html",
        id=set_id(groups[0]),
        scope=scope_of(groups[0], context.control.views),
        capacity=len(members(groups)),
        groups=[(each.id, len(each.roster.live)) for each in groups if each.roster.live],
        instances=instance_rows(context, groups, context.control.views),
        behind=[each.name for each in behind[:BEHIND_SHOWN]],
        behind_count=len(behind),
        events=events.events,
    )


async def preview(context: PageContext) -> Response:
    """Show which instances would be added and removed, before anything is done."""
    plan = await context.ask(
        "POST", f"{_SCOPE}/scale/plan", names=_names(context), body={"capacity": _capacity(context)}
    )
    return await context.show("scale_set_plan.html", plan=plan, scope_id=context.names["scope"])


async def preview_delete(context: PageContext) -> Response:
    """Show which instances would go, and when, before the set is deleted."""
    groups = await find_resource(context.control, context.names["scope"])
    plan = await context.ask(
        "POST", f"{_SCOPE}/scale/plan", names=_names(context), body={"capacity": 0}
    )
    return await context.show(
        "scale_set_delete.html",
        name=groups[0].roster.resource,
        leaving=plan.leaving,
        scope_id=context.names["scope"],
    )


async def delete(context: PageContext) -> Response:
    done: schemas.FleetPlan = await context.ask(
        "DELETE", "/resources/{resource:path}", names={"resource": context.names["scope"]}
    )
    key = "scale-set.being-deleted" if done.terminates else "scale-set.deleted"
    name = context.names["scope"].rpartition("/")[2]
    said = context.t(key, name=name, count=len(done.terminates))
    return context.go("/scale-sets", said=said)


async def scale(context: PageContext) -> Response:
    found = await context.ask(
        "POST", f"{_SCOPE}/scale", names=_names(context), body={"capacity": _capacity(context)}
    )
    key = "scale-set.shrinks" if found.events else "scale-set.resized"
    said = context.t(key, name=found.name, capacity=found.capacity, count=len(found.events))
    return context.go(_url(context), said=said)


async def terminate(context: PageContext) -> Response:
    is_on = context.form.get("termination") == "on"
    notice = f"PT{context.form.get('delay', '5')}M" if is_on else None
    await context.ask(
        "POST", f"{_SCOPE}/model", names=_names(context), body={"terminateNotice": notice}
    )
    return context.go(_url(context), said=context.t("scale-set.model-changed"))


async def upgrade(context: PageContext) -> Response:
    chosen = list(context.lists.get("instance", []))
    if not chosen and "all" not in context.form:
        return context.go(_url(context), said=context.t("scale-set.none-chosen"), failed=True)
    body: dict[str, Any] = {} if "all" in context.form else {"instances": chosen}
    found = await context.ask("POST", f"{_SCOPE}/upgrade", names=_names(context), body=body)
    return context.go(
        _url(context), said=context.t("scale-set.upgraded", count=len(found.upgraded))
    )


async def policy(context: PageContext) -> Response:
    body = {name: name in context.form for name in ("approveUserReboot", "approveUserRedeploy",
                                                 "approveAllInstancesDown")}  # fmt: skip
    await context.ask("POST", f"{_SCOPE}/policy", names=_names(context), body=body)
    return context.go(_url(context), said=context.t("scale-set.policy-changed"))


def _declared(said: dict[str, str]) -> dict[str, Any]:
    notice = {"terminate_notice": f"PT{said['delay']}M"} if said["termination"] == "on" else {}
    return {
        "name": said["name"].strip(),
        "resource_group": said["resource_group"].strip(),
        "location": said["location"].strip(),
        "capacity": _whole(said["capacity"], "capacity"),
        "orchestration": said["orchestration"],
        "priority": said["priority"],
        "update_domains": _whole(said["update_domains"], "update domains"),
        **notice,
    }


def _capacity(context: PageContext) -> int:
    return _whole(context.form.get("capacity", ""), "capacity")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise Problem(422, "form-invalid", f"{what} is {text[:20]!r}; write a whole number")
    return int(text)


def _names(context: PageContext) -> dict[str, str]:
    return {"scope": context.names["scope"]}


def _url(context: PageContext) -> str:
    return f"/scale-sets/{quote(context.names['scope'])}"


PAGES = (
    Page("/scale-sets", list_scale_sets),
    Page("/scale-sets/new", new),
    Page("/scale-sets/new/review", review, sends=True),
    Page("/scale-sets/new", create, sends=True),
    Page("/scale-sets/{scope:path}/delete/preview", preview_delete, sends=True),
    Page("/scale-sets/{scope:path}/preview", preview, sends=True),
    Page("/scale-sets/{scope:path}/scale", scale, sends=True),
    Page("/scale-sets/{scope:path}/delete", delete, sends=True),
    Page("/scale-sets/{scope:path}/termination", terminate, sends=True),
    Page("/scale-sets/{scope:path}/upgrade", upgrade, sends=True),
    Page("/scale-sets/{scope:path}/policy", policy, sends=True),
    Page("/scale-sets/{scope:path}", get_scale_set),
)
