"""One instance: what it is, what is coming, how it asks, what was; and what can be done to it."""

from urllib.parse import quote

from starlette.responses import Response

from fairwarning.core.model import OperationKind, Priority
from fairwarning.operator_api import schemas
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import Desk

_PATH = "/instances/{instance:path}"
EVENTS_SHOWN = 30


async def instance(desk: Desk) -> Response:
    found: schemas.InstanceDetail = await desk.ask("GET", _PATH, names=_names(desk))
    past: schemas.Events = await desk.ask(
        "GET",
        "/events",
        query={"instance": f"{found.scope}/{found.name}", "limit": EVENTS_SHOWN,
               "after": desk.query.get("after")},
    )  # fmt: skip
    return desk.show(
        "instance.html",
        instance=found,
        past=past,
        deeds=[kind.value for kind in _deeds(desk, found)],
    )


async def do(desk: Desk) -> Response:
    kind = OperationKind(desk.form["kind"])
    event: schemas.Event = await desk.ask("POST", f"{_PATH}/{kind}", names=_names(desk))
    what = {"deed": desk.t(f"deed.{kind}"), "name": event.resources[0]}
    said = (
        desk.t("instance.done-announced", **what)
        if event.announced
        else desk.t("instance.done-at-once", **what)
    )
    return desk.go(f"/events/{event.id}", said=said)


def _deeds(desk: Desk, instance: schemas.InstanceDetail) -> list[OperationKind]:
    if not desk.may("POST", f"{_PATH}/{OperationKind.RESTART}"):
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


def _names(desk: Desk) -> dict[str, str]:
    return {"instance": desk.names["instance"]}


def url_of(scope: str, name: str) -> str:
    return f"/instances/{quote(scope)}/{quote(name)}"


PAGES = (
    Page("/instances/{instance:path}/do", do, sends=True),
    Page("/instances/{instance:path}", instance),
)
