"""Rollouts: how far each is, and pause, resume, cancel."""

from collections import Counter
from urllib.parse import quote

from starlette.responses import Response

from fairwarning.operator_api.routes import rollouts as shapes
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import Desk

OVER = frozenset({"completed", "failed", "cancelled", "skipped"})
_ROLLOUT = "/rollouts/{id}"
ROLLOUTS_SHOWN = 50


async def listed(desk: Desk) -> Response:
    found: shapes.RolloutsOut = await desk.ask(
        "GET", "/rollouts", query={"limit": ROLLOUTS_SHOWN, "after": desk.query.get("after")}
    )
    rows = [(each, *progress(each)) for each in found.rollouts]
    return desk.show("rollouts.html", rows=rows, next=found.next)


async def shown(desk: Desk) -> Response:
    found: shapes.RolloutOut = await desk.ask("GET", _ROLLOUT, names={"id": desk.names["id"]})
    done, all_steps = progress(found)
    return desk.show(
        "rollout.html",
        rollout=found,
        done=done,
        all_steps=all_steps,
        counts=Counter(each.phase for each in found.steps),
    )


async def change(desk: Desk) -> Response:
    verb = desk.names["verb"]
    if verb not in ("pause", "resume", "cancel"):
        return desk.back(said=desk.t("rollout.unknown-deed"), failed=True)
    await desk.ask("POST", f"{_ROLLOUT}/{verb}", names={"id": desk.names["id"]})
    return desk.go(f"/rollouts/{quote(desk.names['id'])}", said=desk.t(f"rollout.did-{verb}"))


def progress(rollout: shapes.RolloutOut) -> tuple[int, int]:
    """How many steps are over, of how many."""
    return sum(each.phase in OVER for each in rollout.steps), len(rollout.steps)


PAGES = (
    Page("/rollouts", listed),
    Page("/rollouts/{id}", shown),
    Page("/rollouts/{id}/{verb}", change, sends=True),
)
