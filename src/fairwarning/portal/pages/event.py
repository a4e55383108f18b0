"""One event: its whole story, what its instances see of it, and what can be decided."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo

from starlette.responses import Response

from fairwarning.control.problems import Problem
from fairwarning.control.shapes import Event
from fairwarning.core.api_versions import NEWEST
from fairwarning.core.journal_text import listed
from fairwarning.core.model import Phase
from fairwarning.portal import commands
from fairwarning.portal.app import Page
from fairwarning.portal.desk import Desk
from fairwarning.portal.story import name_of, steps
from fairwarning.portal.zones import ZONE, local, rfc3339_of, zone_of

PATH = "/events/{id}"
OTHERS_MAX = 5


async def event(desk: Desk) -> Response:
    names = {"id": desk.names["id"]}
    found: Event = await desk.ask("GET", PATH, names=names)
    seen = await desk.ask("GET", f"{PATH}/documents", names=names)
    others = [await desk.ask("GET", PATH, names={"id": id}) for id in found.waits_for[:OTHERS_MAX]]
    zone = zone_of(desk.request.cookies.get(ZONE))
    urls, host = desk.control.metadata_urls, desk.request.url.hostname or "localhost"
    return desk.show(
        "event.html",
        event=found,
        others=others,
        steps=steps(found),
        is_pending=found.phase is Phase.SCHEDULED,
        is_over=found.ended is not None,
        documents=seen.documents[::-1],
        newest=NEWEST.name,
        curls={
            each.api_version: commands.curl(urls, host, found.resources[0], each.api_version)
            for each in seen.documents
        },
        can_play=commands.can_play(urls),
        asks=_asks(desk, found, zone),
        name_of=name_of,
        zone=zone,
        at=local(found.not_before, zone),
    )


def approving(desk: Desk, event: Event, zone: ZoneInfo) -> str:
    """What approving will do, for the question before it."""
    said = desk.t("event.ask-approve", **_facts(event, zone))
    if event.waits_for:
        said += " " + desk.t("event.ask-approve-waits", count=len(event.waits_for))
    return f"{said} {desk.t('event.ask-no-way-back')}"


async def approve(desk: Desk) -> Response:
    done: Event = await desk.ask("POST", f"{PATH}/approve", names={"id": desk.names["id"]})
    facts = {"type": done.type, "names": listed(done.resources)}
    if done.phase is Phase.SCHEDULED:
        return desk.back(said=desk.t("event.approved-waits", **facts))
    return desk.back(said=desk.t("event.approved", **facts))


async def cancel(desk: Desk) -> Response:
    body = {"reason": desk.form.get("reason", "")}
    done: Event = await desk.ask(
        "POST", f"{PATH}/cancel", names={"id": desk.names["id"]}, body=body
    )
    said = desk.t("event.cancelled", type=done.type, names=listed(done.resources))
    return desk.go(f"/events/{done.id}", said=said)


async def postpone(desk: Desk) -> Response:
    done: Event = await desk.ask(
        "POST", f"{PATH}/postpone", names={"id": desk.names["id"]}, body=_until(desk)
    )
    return desk.go(f"/events/{done.id}", said=desk.t("event.postponed"))


def _until(desk: Desk) -> Mapping[str, str]:
    """Either of the two fields; the zone is the one that the form was shown in."""
    at, notice = desk.form.get("at", "").strip(), desk.form.get("notice", "").strip()
    if bool(at) == bool(notice):
        raise Problem(422, "form-incomplete", desk.t("event.postpone-either"))
    if notice:
        return {"notice": notice}
    instant = rfc3339_of(at, zone_of(desk.form.get("zone")))
    if instant is None:
        raise Problem(422, "form-incomplete", desk.t("event.postpone-no-time", text=at[:40]))
    return {"notBefore": instant}


def _asks(desk: Desk, event: Event, zone: ZoneInfo) -> Mapping[str, str]:
    facts = _facts(event, zone)
    return {
        "approve": approving(desk, event, zone),
        "cancel": desk.t("event.ask-cancel", **facts),
        "postpone": desk.t("event.ask-postpone", **facts),
    }


def _facts(event: Event, zone: ZoneInfo) -> Mapping[str, object]:
    return {
        "type": event.type,
        "names": listed(event.resources),
        "count": len(event.resources),
        "at": local(event.not_before, zone),
    }


PAGES = (
    Page(PATH, event),
    Page(f"{PATH}/approve", approve, sends=True),
    Page(f"{PATH}/cancel", cancel, sends=True),
    Page(f"{PATH}/postpone", postpone, sends=True),
)
