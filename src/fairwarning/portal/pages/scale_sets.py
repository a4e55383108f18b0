"""The pages of scale sets: list, create, resize, change and upgrade them."""

from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from fairwarning.core.refusals import Refused
from fairwarning.operator_api import schemas
from fairwarning.operator_api.problems import Problem, of_refusal
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext

_SCOPE = "/scopes/{scope:path}"
SETS_SHOWN = 50  # A page that a person can look through.
DEFAULTS = {"name": "", "capacity": "2", "orchestration": "uniform", "priority": "Regular",
            "update_domains": "5", "termination": "off", "delay": "5"}  # fmt: skip


async def list_scale_sets(context: PageContext) -> Response:
    found: schemas.Fleet = await context.ask(
        "GET",
        "/fleet",
        query={"search": "/scale-set/", "limit": SETS_SHOWN, "after": context.query.get("after")},
    )
    return context.show("scale_sets.html", scopes=found.scopes, next=found.next)


async def new(context: PageContext) -> Response:
    return context.show("scale_set_new.html", said_in_form=DEFAULTS, wrong="")


async def create(context: PageContext) -> Response:
    said = {**DEFAULTS, **context.form}
    try:
        body = {"test": "test" in context.form, "scale_set": [_declared(said)]}
        await context.ask("POST", "/fleet", query={"create": True}, body=body)
    except (Problem, Refused) as wrong:
        problem = wrong if isinstance(wrong, Problem) else of_refusal(wrong)
        status = 409 if problem.status == 409 else 422
        return context.show("scale_set_new.html", status, said_in_form=said, wrong=problem.detail)
    return context.go(
        f"/scale-sets/{quote(said['name'])}", said=context.t("scale-set.made", name=said["name"])
    )


async def get_scale_set(context: PageContext) -> Response:
    scope: schemas.Scope = await context.ask("GET", _SCOPE, names=_names(context))
    behind = [each for each in scope.instances if not each.latest_model_applied]
    return context.show("scale_set.html", scope=scope, behind=behind)


async def preview(context: PageContext) -> Response:
    """Show which instances would be added and removed, before anything is done."""
    plan = await context.ask(
        "POST", f"{_SCOPE}/scale/plan", names=_names(context), body={"capacity": _capacity(context)}
    )
    return context.show("scale_set_plan.html", plan=plan, scope_id=context.names["scope"])


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
        "name": said["name"],
        "capacity": _at_least_one(said["capacity"]),
        "orchestration": said["orchestration"],
        "priority": said["priority"],
        "update_domains": _whole(said["update_domains"], "update domains"),
        **notice,
    }


def _at_least_one(text: str) -> int:
    """Return the number. Raises Problem for 0, because a set without instances has no page."""
    capacity = _whole(text, "capacity")
    if not capacity:
        raise Problem(
            422, "parameter-invalid", "a new scale set needs a capacity of at least 1; raise it"
        )
    return capacity


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
    Page("/scale-sets/new", create, sends=True),
    Page("/scale-sets/{scope:path}/preview", preview, sends=True),
    Page("/scale-sets/{scope:path}/scale", scale, sends=True),
    Page("/scale-sets/{scope:path}/termination", terminate, sends=True),
    Page("/scale-sets/{scope:path}/upgrade", upgrade, sends=True),
    Page("/scale-sets/{scope:path}/policy", policy, sends=True),
    Page("/scale-sets/{scope:path}", get_scale_set),
)
