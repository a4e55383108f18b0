"""Rehearse: move the clock, play stories, set faults, and see what handlers make of it."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from fairwarning.core.faults import STATUSES, FaultKind, Part
from fairwarning.core.journal_text import listed
from fairwarning.operator_api import schemas
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.routes import faults as fault_shapes
from fairwarning.operator_api.routes import requests
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import Desk
from fairwarning.portal.pages.overview import base_of
from fairwarning.portal.scenario_runner import story, story_list

LEAPS = ("1m", "5m", "15m", "1h")
SPEEDS = ("", "10", "60", "600")
REQUESTS_SHOWN = 25
FIELDS = {"count": "count", "for": "for", "delay": "delay"}


async def rehearse(desk: Desk) -> Response:
    clock: schemas.ClockState = await desk.ask("GET", "/clock")
    has_test = desk.control.views.has_test_scope()
    if not (clock.virtual or has_test):
        return desk.show("rehearse_nowhere.html", url=base_of(desk))
    faults: fault_shapes.FaultList = await desk.ask("GET", "/faults")
    seen: requests.RequestList = await desk.ask("GET", "/requests")
    return desk.show(
        "rehearse.html",
        clock=clock,
        has_test=has_test,
        leaps=LEAPS,
        speeds=SPEEDS,
        stories=story_list(),
        runs=list(desk.stage.runs),
        is_busy=desk.stage.is_busy,
        faults_set=faults.faults,
        kinds=list(FaultKind),
        parts=list(Part),
        statuses=STATUSES,
        seen=seen,
        requests=seen.requests[:REQUESTS_SHOWN],
        metadata_urls=desk.control.metadata_urls,
    )


async def advance(desk: Desk) -> Response:
    by = desk.form.get("custom") or desk.form.get("by", "")
    face: schemas.ClockState = await desk.ask("POST", "/clock/advance", body={"by": by})
    return desk.go("/rehearse", said=desk.t("rehearse.advanced", by=by, now=face.now[:19] + "Z"))


async def play(desk: Desk) -> Response:
    name = desk.form.get("story", "")
    found = story(name)
    if found is None:
        raise Problem(404, "no-such-story", desk.t("rehearse.no-story", name=name[:60]))
    # The one who begins the story must be allowed to do what is done in it.
    if not desk.may("POST", "/events"):
        raise Problem(403, "role-too-low", desk.t("rehearse.may-not"))
    clock: schemas.ClockState = await desk.ask("GET", "/clock")
    roles = {each: desk.form[f"role-{each}"] for each in found.cast if f"role-{each}" in desk.form}
    desk.stage.begin(
        name, found.scenario, roles, _speed(desk), desk.caller, _judge(is_virtual=clock.virtual)
    )
    if desk.control.views.has_test_scope():
        await desk.ask("POST", "/requests/watch", body={})
    return desk.go("/rehearse#tale", said=desk.t("rehearse.began", title=found.scenario.title))


async def halt(desk: Desk) -> Response:
    if not desk.may("POST", "/events"):
        raise Problem(403, "role-too-low", desk.t("rehearse.may-not"))
    desk.stage.halt()
    return desk.go("/rehearse", said=desk.t("rehearse.halting"))


async def set_fault(desk: Desk) -> Response:
    form = desk.form
    body: dict[str, Any] = {"kind": form.get("kind", ""), "on": form.get("on", "poll")}
    body["instances"] = form.get("instances", "").replace(",", " ").split()
    body |= {key: form[name] for name, key in FIELDS.items() if name in form and name != "count"}
    for name in ("count", "status"):
        if form.get(name, "").isdigit():
            body[name] = int(form[name])
    made: fault_shapes.FaultOut = await desk.ask("POST", "/faults", body=body)
    whom = listed(made.instances) if made.instances else desk.t("rehearse.everybody")
    return desk.go("/rehearse", said=desk.t("rehearse.fault-made", kind=made.kind, whom=whom))


async def clear_fault(desk: Desk) -> Response:
    await desk.ask("DELETE", "/faults/{id}", names={"id": desk.names["id"]})
    return desk.go("/rehearse", said=desk.t("rehearse.fault-cleared"))


async def clear_faults(desk: Desk) -> Response:
    await desk.ask("DELETE", "/faults")
    return desk.go("/rehearse", said=desk.t("rehearse.faults-cleared"))


async def watch(desk: Desk) -> Response:
    await desk.ask("POST", "/requests/watch", body={})
    return desk.go("/rehearse#requests", said=desk.t("rehearse.watching"))


async def unwatch(desk: Desk) -> Response:
    await desk.ask("DELETE", "/requests/watch")
    return desk.go("/rehearse#requests", said=desk.t("rehearse.unwatched"))


def _speed(desk: Desk) -> float | None:
    text = desk.form.get("speed", "")
    return float(text) if text in SPEEDS and text else None


def _judge(*, is_virtual: bool) -> Callable[[Mapping[str, Any]], bool]:
    """Nobody's real machine goes down for a story: it is a test fleet, or time is not real."""
    return lambda scope: is_virtual or bool(scope["test"])


PAGES = (
    Page("/rehearse", rehearse),
    Page("/rehearse/clock", advance, sends=True),
    Page("/rehearse/play", play, sends=True),
    Page("/rehearse/halt", halt, sends=True),
    Page("/rehearse/faults", set_fault, sends=True),
    Page("/rehearse/faults/clear", clear_faults, sends=True),
    Page("/rehearse/faults/{id}/clear", clear_fault, sends=True),
    Page("/rehearse/watch", watch, sends=True),
    Page("/rehearse/unwatch", unwatch, sends=True),
)
