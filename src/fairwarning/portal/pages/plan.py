"""The page that plans maintenance: fill in a form, preview the steps, then announce."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from starlette.responses import Response

from fairwarning.core.refusals import Refused
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.routes import rollouts
from fairwarning.operator_api.routes.resources import ResourceOut, Resources
from fairwarning.operator_api.routes.rollouts import RolloutPlan
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext

RESOURCES_OFFERED = 50  # The search finds the others.
STEPS_SHOWN = 40
"""The beginning of the plan; its end is in the summary. A step has nine elements."""
FIRST = {"type": "Reboot", "scopes_at_once": "1", "stop_on_failure": "1", "time_zone": "UTC"}


async def form(context: PageContext) -> Response:
    chosen = context.request.query_params.getlist("scope")
    return await _form(context, FIRST, chosen, [])


async def preview(context: PageContext) -> Response:
    if "search" in context.form:
        return await _again(context, "")
    body = rollout_body(context.form, context.lists)
    if not body["scopes"] and "everything" not in context.form:
        return await _again(context, context.t("plan.none-chosen"))
    try:
        plan: rollouts.RolloutPlan = await context.ask("POST", "/rollouts/plan", body=body)
    except (Problem, Refused) as wrong:
        text = wrong.detail if isinstance(wrong, Problem) else wrong.message
        return await _again(context, text)
    return await context.show(
        "plan_preview.html",
        plan=plan,
        steps=plan.steps[:STEPS_SHOWN],
        body=body,
        fields=_carried(context),
        instances=plan.instances,
        takes_s=takes_s(plan),
    )


async def announce(context: PageContext) -> Response:
    if "change" in context.form:
        return await _again(context, "")
    body = rollout_body(context.form, context.lists)
    made: rollouts.RolloutOut = await context.ask("POST", "/rollouts", body=body)
    return context.go(f"/rollouts/{made.id}", said=context.t("plan.begun"))


async def _again(context: PageContext, wrong: str) -> Response:
    chosen = [each for each in context.lists.get("scope", ()) if each]
    days = list(context.lists.get("day", ()))
    return await _form(context, context.form, chosen, days, wrong=wrong)


async def _form(
    context: PageContext, said: Any, chosen: list[str], days: list[str], *, wrong: str = ""
) -> Response:
    found: Resources = await context.ask(
        "GET", "/resources", query={"limit": RESOURCES_OFFERED, "search": said.get("find")}
    )
    offered = {each.id for each in found.resources}
    groups: dict[str, list[ResourceOut]] = {}
    for each in found.resources:
        groups.setdefault(each.resource_group, []).append(each)
    return await context.show(
        "plan.html",
        422 if wrong else 200,
        groups=sorted(groups.items()),
        has_more=found.next is not None,
        said_in_form=dict(said),
        chosen=chosen,
        others=[each for each in chosen if each not in offered],
        days=DAYS,
        chosen_days=days,
        wrong=wrong,
    )


def _carried(context: PageContext) -> list[tuple[str, str]]:
    """Return the form's fields as hidden fields, so that the previewed plan is announced."""
    return [
        (name, value)
        for name, values in context.lists.items()
        if name not in ("form_key", "back", "find")
        for value in values
    ]


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def rollout_body(form: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the form as a body for the API. Empty fields are left out and get the defaults."""
    body: dict[str, Any] = {"type": form.get("type", "Reboot")}
    chosen = [each for each in lists.get("scope", ()) if each.strip()]
    body["scopes"] = [] if "everything" in form else chosen
    texts = {"name": "name", "description": "description", "notice": "notice",
             "duration": "duration", "pause": "pause", "time_zone": "timeZone"}  # fmt: skip
    body |= {key: form[field] for field, key in texts.items() if field in form}
    if form.get("scopes_at_once", "").isdigit():
        body["scopesAtOnce"] = int(form["scopes_at_once"])
    body["stopOnFailure"] = "stop_on_failure" in form
    if "from" in form and "to" in form:
        days = [each for each in lists.get("day", ()) if each in DAYS]
        body["windows"] = [{"days": days, "from": form["from"], "to": form["to"]}]
    blackouts = form.get("blackouts", "").replace(",", " ").split()
    if blackouts:
        body["blackouts"] = blackouts
    return body


def takes_s(plan: RolloutPlan) -> float | None:
    """Return the seconds from the first announcement to the end, or None if it is unknown."""
    begins = [each.announce_at for each in plan.steps if each.announce_at]
    if not begins or plan.ends is None:
        return None
    first = min(datetime.fromisoformat(each) for each in begins)
    return (datetime.fromisoformat(plan.ends) - first).total_seconds()


PAGES = (
    Page("/plan", form),
    Page("/plan", preview, sends=True),
    Page("/plan/announce", announce, sends=True),
)
