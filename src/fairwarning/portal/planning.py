"""From the form of a plan to what the API takes, and a few figures of the answer. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fairwarning.control.rollout_shapes import RolloutPlan

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def rollout_body(form: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What is left empty is left out, so that the API's own defaults hold."""
    body: dict[str, Any] = {"type": form.get("type", "Reboot")}
    body["scopes"] = [each for each in lists.get("scope", ()) if each.strip()]
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
    """From the first announcement to the end; None if that cannot be said."""
    begins = [each.announce_at for each in plan.steps if each.announce_at]
    if not begins or plan.ends is None:
        return None
    first = min(datetime.fromisoformat(each) for each in begins)
    return (datetime.fromisoformat(plan.ends) - first).total_seconds()
