"""Scale sets: make one, with its termination notice; change it; bring instances up to date."""

from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from fairwarning.core.refusals import Refused
from fairwarning.operator_api import schemas
from fairwarning.operator_api.problems import Problem, of_refusal
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import Desk

_SCOPE = "/scopes/{scope:path}"
SETS_SHOWN = 50
DEFAULTS = {"name": "", "capacity": "2", "orchestration": "uniform", "priority": "Regular",
            "update_domains": "5", "termination": "off", "delay": "5"}  # fmt: skip


async def listed(desk: Desk) -> Response:
    found: schemas.Fleet = await desk.ask(
        "GET",
        "/fleet",
        query={"search": "/scale-set/", "limit": SETS_SHOWN, "after": desk.query.get("after")},
    )
    return desk.show("scale_sets.html", scopes=found.scopes, next=found.next)


async def new(desk: Desk) -> Response:
    return desk.show("scale_set_new.html", said_in_form=DEFAULTS, wrong="")


async def create(desk: Desk) -> Response:
    said = {**DEFAULTS, **desk.form}
    try:
        body = {"test": "test" in desk.form, "scale_set": [_declared(said)]}
        await desk.ask("POST", "/fleet", query={"create": True}, body=body)
    except (Problem, Refused) as wrong:
        problem = wrong if isinstance(wrong, Problem) else of_refusal(wrong)
        status = 409 if problem.status == 409 else 422
        return desk.show("scale_set_new.html", status, said_in_form=said, wrong=problem.detail)
    return desk.go(
        f"/scale-sets/{quote(said['name'])}", said=desk.t("scale-set.made", name=said["name"])
    )


async def shown(desk: Desk) -> Response:
    scope: schemas.Scope = await desk.ask("GET", _SCOPE, names=_names(desk))
    behind = [each for each in scope.instances if not each.latest_model_applied]
    return desk.show("scale_set.html", scope=scope, behind=behind)


async def preview(desk: Desk) -> Response:
    """Who comes or goes, before anything is done."""
    plan = await desk.ask(
        "POST", f"{_SCOPE}/scale/plan", names=_names(desk), body={"capacity": _capacity(desk)}
    )
    return desk.show("scale_set_plan.html", plan=plan, scope_id=desk.names["scope"])


async def scale(desk: Desk) -> Response:
    found = await desk.ask(
        "POST", f"{_SCOPE}/scale", names=_names(desk), body={"capacity": _capacity(desk)}
    )
    key = "scale-set.shrinks" if found.events else "scale-set.resized"
    said = desk.t(key, name=found.name, capacity=found.capacity, count=len(found.events))
    return desk.go(_url(desk), said=said)


async def terminate(desk: Desk) -> Response:
    is_on = desk.form.get("termination") == "on"
    notice = f"PT{desk.form.get('delay', '5')}M" if is_on else None
    await desk.ask("POST", f"{_SCOPE}/model", names=_names(desk), body={"terminateNotice": notice})
    return desk.go(_url(desk), said=desk.t("scale-set.model-changed"))


async def upgrade(desk: Desk) -> Response:
    chosen = list(desk.lists.get("instance", []))
    if not chosen and "all" not in desk.form:
        return desk.go(_url(desk), said=desk.t("scale-set.none-chosen"), failed=True)
    body: dict[str, Any] = {} if "all" in desk.form else {"instances": chosen}
    found = await desk.ask("POST", f"{_SCOPE}/upgrade", names=_names(desk), body=body)
    return desk.go(_url(desk), said=desk.t("scale-set.upgraded", count=len(found.upgraded)))


async def policy(desk: Desk) -> Response:
    body = {name: name in desk.form for name in ("approveUserReboot", "approveUserRedeploy",
                                                 "approveAllInstancesDown")}  # fmt: skip
    await desk.ask("POST", f"{_SCOPE}/policy", names=_names(desk), body=body)
    return desk.go(_url(desk), said=desk.t("scale-set.policy-changed"))


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
    """A set without instances has no page yet."""
    capacity = _whole(text, "capacity")
    if not capacity:
        raise Problem(
            422, "parameter-invalid", "a new scale set needs a capacity of at least 1; raise it"
        )
    return capacity


def _capacity(desk: Desk) -> int:
    return _whole(desk.form.get("capacity", ""), "capacity")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise Problem(422, "form-invalid", f"{what} is {text[:20]!r}; write a whole number")
    return int(text)


def _names(desk: Desk) -> dict[str, str]:
    return {"scope": desk.names["scope"]}


def _url(desk: Desk) -> str:
    return f"/scale-sets/{quote(desk.names['scope'])}"


PAGES = (
    Page("/scale-sets", listed),
    Page("/scale-sets/new", new),
    Page("/scale-sets/new", create, sends=True),
    Page("/scale-sets/{scope:path}/preview", preview, sends=True),
    Page("/scale-sets/{scope:path}/scale", scale, sends=True),
    Page("/scale-sets/{scope:path}/termination", terminate, sends=True),
    Page("/scale-sets/{scope:path}/upgrade", upgrade, sends=True),
    Page("/scale-sets/{scope:path}/policy", policy, sends=True),
    Page("/scale-sets/{scope:path}", shown),
)
