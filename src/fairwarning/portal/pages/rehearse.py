"""The rehearsal page: move the clock, play scenarios, set faults, and watch the requests."""

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
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.pages.overview import base_of
from fairwarning.portal.scenario_runner import bundled_scenarios, find_scenario

LEAPS = ("1m", "5m", "15m", "1h")
SPEEDS = ("", "10", "60", "600")
REQUESTS_SHOWN = 25  # About one screen, the newest first.
FIELDS = {"count": "count", "for": "for", "delay": "delay"}


async def rehearse(context: PageContext) -> Response:
    clock: schemas.ClockState = await context.ask("GET", "/clock")
    has_test = context.control.views.has_test_scope()
    if not (clock.virtual or has_test):
        return await context.show("rehearse_nowhere.html", url=base_of(context))
    faults: fault_shapes.FaultList = await context.ask("GET", "/faults")
    seen: requests.RequestList = await context.ask("GET", "/requests")
    return await context.show(
        "rehearse.html",
        clock=clock,
        has_test=has_test,
        leaps=LEAPS,
        speeds=SPEEDS,
        scenarios=bundled_scenarios(),
        runs=list(context.scenario_runner.runs),
        is_busy=context.scenario_runner.is_busy,
        faults_set=faults.faults,
        kinds=list(FaultKind),
        parts=list(Part),
        statuses=STATUSES,
        seen=seen,
        requests=seen.requests[:REQUESTS_SHOWN],
        metadata_urls=context.control.metadata_urls,
    )


async def advance(context: PageContext) -> Response:
    by = context.form.get("custom") or context.form.get("by", "")
    face: schemas.ClockState = await context.ask("POST", "/clock/advance", body={"by": by})
    return context.go(
        "/rehearse", said=context.t("rehearse.advanced", by=by, now=face.now[:19] + "Z")
    )


async def play(context: PageContext) -> Response:
    name = context.form.get("scenario", "")
    found = find_scenario(name)
    if found is None:
        raise Problem(404, "no-such-scenario", context.t("rehearse.no-scenario", name=name[:60]))
    # The caller who starts the scenario must be allowed to do what the scenario does.
    if not context.may("POST", "/events"):
        raise Problem(403, "role-too-low", context.t("rehearse.may-not"))
    clock: schemas.ClockState = await context.ask("GET", "/clock")
    roles = {
        each: context.form[f"role-{each}"]
        for each in found.instances
        if f"role-{each}" in context.form
    }
    context.scenario_runner.begin(
        name,
        found.scenario,
        roles,
        _speed(context),
        context.caller,
        _judge(is_virtual=clock.virtual),
    )
    if context.control.views.has_test_scope():
        await context.ask("POST", "/requests/watch", body={})
    return context.go("/rehearse#run", said=context.t("rehearse.began", title=found.scenario.title))


async def halt(context: PageContext) -> Response:
    if not context.may("POST", "/events"):
        raise Problem(403, "role-too-low", context.t("rehearse.may-not"))
    context.scenario_runner.halt()
    return context.go("/rehearse", said=context.t("rehearse.halting"))


async def set_fault(context: PageContext) -> Response:
    form = context.form
    body: dict[str, Any] = {"kind": form.get("kind", ""), "on": form.get("on", "poll")}
    body["instances"] = form.get("instances", "").replace(",", " ").split()
    body |= {key: form[name] for name, key in FIELDS.items() if name in form and name != "count"}
    for name in ("count", "status"):
        if form.get(name, "").isdigit():
            body[name] = int(form[name])
    made: fault_shapes.FaultOut = await context.ask("POST", "/faults", body=body)
    whom = listed(made.instances) if made.instances else context.t("rehearse.everybody")
    return context.go("/rehearse", said=context.t("rehearse.fault-made", kind=made.kind, whom=whom))


async def clear_fault(context: PageContext) -> Response:
    await context.ask("DELETE", "/faults/{id}", names={"id": context.names["id"]})
    return context.go("/rehearse", said=context.t("rehearse.fault-cleared"))


async def clear_faults(context: PageContext) -> Response:
    await context.ask("DELETE", "/faults")
    return context.go("/rehearse", said=context.t("rehearse.faults-cleared"))


async def watch(context: PageContext) -> Response:
    await context.ask("POST", "/requests/watch", body={})
    return context.go("/rehearse#requests", said=context.t("rehearse.watching"))


async def unwatch(context: PageContext) -> Response:
    await context.ask("DELETE", "/requests/watch")
    return context.go("/rehearse#requests", said=context.t("rehearse.unwatched"))


def _speed(context: PageContext) -> float | None:
    text = context.form.get("speed", "")
    return float(text) if text in SPEEDS and text else None


def _judge(*, is_virtual: bool) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that says whether a scenario may use a scope.

    To protect real VMs, it may use only test fleets, unless the clock is virtual.
    """
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
