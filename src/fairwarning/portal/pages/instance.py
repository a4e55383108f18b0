"""The page of one instance: its facts, events and polling, and the operations on it."""

from starlette.responses import Response

from fairwarning.core.model import OperationKind, Priority
from fairwarning.operator_api import schemas
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext

_PATH = "/instances/{instance:path}"
EVENTS_SHOWN = 30  # The recent ones; the history has all.


async def instance(context: PageContext) -> Response:
    found: schemas.InstanceDetail = await context.ask("GET", _PATH, names=_names(context))
    past: schemas.Events = await context.ask(
        "GET",
        "/events",
        query={"instance": f"{found.scope}/{found.name}", "limit": EVENTS_SHOWN,
               "after": context.query.get("after")},
    )  # fmt: skip
    return await context.show(
        "instance.html",
        instance=found,
        past=past,
        actions=[kind.value for kind in _actions(context, found)],
    )


async def do(context: PageContext) -> Response:
    kind = OperationKind(context.form["kind"])
    event: schemas.Event = await context.ask("POST", f"{_PATH}/{kind}", names=_names(context))
    what = {"action": context.t(f"action.{kind}"), "name": event.resources[0]}
    said = (
        context.t("instance.done-announced", **what)
        if event.announced
        else context.t("instance.done-at-once", **what)
    )
    return context.go(f"/events/{event.id}", said=said)


def _actions(context: PageContext, instance: schemas.InstanceDetail) -> list[OperationKind]:
    if not context.may("POST", f"{_PATH}/{OperationKind.RESTART}"):
        return []
    is_spot = instance.priority == Priority.SPOT
    return [
        kind
        for kind in OperationKind
        if (kind is not OperationKind.EVICT or is_spot)
        and (kind is not OperationKind.START or instance.power != "running")
        and (kind not in (OperationKind.STOP, OperationKind.DEALLOCATE)
             or instance.power == "running")
    ]  # fmt: skip


def _names(context: PageContext) -> dict[str, str]:
    return {"instance": context.names["instance"]}


PAGES = (
    Page("/instances/{instance:path}/do", do, sends=True),
    Page("/instances/{instance:path}", instance),
)
