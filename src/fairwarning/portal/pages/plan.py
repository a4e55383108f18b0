"""Plan maintenance: fill in, see which instances when, then announce."""

from typing import Any

from starlette.responses import Response

from fairwarning.control import rollout_shapes, shapes
from fairwarning.control.problems import Problem
from fairwarning.core.refusals import Refused
from fairwarning.portal.app import Page
from fairwarning.portal.desk import Desk
from fairwarning.portal.planning import DAYS, rollout_body, takes_s

SCOPES_OFFERED = 200
STEPS_SHOWN = 200
FIRST = {"type": "Reboot", "scopes_at_once": "1", "stop_on_failure": "1", "time_zone": "UTC"}


async def form(desk: Desk) -> Response:
    chosen = desk.request.query_params.getlist("scope")
    return await _form(desk, FIRST, chosen, [])


async def preview(desk: Desk) -> Response:
    body = rollout_body(desk.form, desk.lists)
    try:
        plan: rollout_shapes.RolloutPlan = await desk.ask("POST", "/rollouts/plan", body=body)
    except (Problem, Refused) as wrong:
        text = wrong.detail if isinstance(wrong, Problem) else wrong.message
        return await _again(desk, text)
    return desk.show(
        "plan_preview.html",
        plan=plan,
        steps=plan.steps[:STEPS_SHOWN],
        body=body,
        fields=_carried(desk),
        instances=sum(len(each.instances) for each in plan.steps),
        takes_s=takes_s(plan),
    )


async def announce(desk: Desk) -> Response:
    if "change" in desk.form:
        return await _again(desk, "")
    body = rollout_body(desk.form, desk.lists)
    made: rollout_shapes.RolloutShown = await desk.ask("POST", "/rollouts", body=body)
    return desk.go(f"/rollouts/{made.id}", said=desk.t("plan.begun"))


async def _again(desk: Desk, wrong: str) -> Response:
    chosen = [each for each in desk.lists.get("scope", ()) if each]
    days = list(desk.lists.get("day", ()))
    return await _form(desk, desk.form, chosen, days, wrong=wrong)


async def _form(
    desk: Desk, said: Any, chosen: list[str], days: list[str], *, wrong: str = ""
) -> Response:
    fleet: shapes.Fleet = await desk.ask("GET", "/fleet", query={"limit": SCOPES_OFFERED})
    return desk.show(
        "plan.html",
        422 if wrong else 200,
        scopes=fleet.scopes,
        has_more=fleet.next is not None,
        said_in_form=dict(said),
        chosen=chosen,
        days=DAYS,
        chosen_days=days,
        wrong=wrong,
    )


def _carried(desk: Desk) -> list[tuple[str, str]]:
    """The whole form once more, hidden, so that what is announced is what was previewed."""
    return [
        (name, value)
        for name, values in desk.lists.items()
        if name not in ("form_key", "back")
        for value in values
    ]


PAGES = (
    Page("/plan", form),
    Page("/plan", preview, sends=True),
    Page("/plan/announce", announce, sends=True),
)
