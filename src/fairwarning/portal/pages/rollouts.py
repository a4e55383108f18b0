"""The pages of rollouts: their progress, and pause, resume and cancel."""

from urllib.parse import quote

from starlette.responses import Response

from fairwarning.operator_api.routes import rollouts as shapes
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.pages.events import name_of
from fairwarning.portal.row_pages import row_page

OVER = frozenset({"completed", "failed", "cancelled", "skipped"})
_ROLLOUT = "/rollouts/{id}"
# A rollout has ten elements and a step twelve, and a page is to have at most 600.
ROLLOUTS_SHOWN = 40
STEPS_SHOWN = 35


async def list_rollouts(context: PageContext) -> Response:
    found: shapes.RolloutsOut = await context.ask(
        "GET", "/rollouts", query={"limit": ROLLOUTS_SHOWN, "after": context.query.get("after")}
    )
    rows = [(each, *progress(each)) for each in found.rollouts]
    return await context.show("rollouts.html", rows=rows, next=found.next)


async def get_rollout(context: PageContext) -> Response:
    found: shapes.RolloutOut = await context.ask("GET", _ROLLOUT, names={"id": context.names["id"]})
    done, all_steps = progress(found)
    at = next((row for row, each in enumerate(found.steps) if each.phase not in OVER), 0)
    page = row_page(context, len(found.steps), STEPS_SHOWN, shows=at)
    return await context.show(
        "rollout.html",
        rollout=found,
        steps=found.steps[page.first : page.last],
        page=page,
        begun_by=name_of(found.created_by),
        done=done,
        all_steps=all_steps,
    )


async def change(context: PageContext) -> Response:
    verb = context.names["verb"]
    if verb not in ("pause", "resume", "cancel"):
        return context.back(said=context.t("rollout.unknown-action"), failed=True)
    await context.ask("POST", f"{_ROLLOUT}/{verb}", names={"id": context.names["id"]})
    return context.go(
        f"/rollouts/{quote(context.names['id'])}", said=context.t(f"rollout.did-{verb}")
    )


def progress(rollout: shapes.RolloutOut) -> tuple[int, int]:
    """Return how many steps are over, and how many there are."""
    over = sum(count for phase, count in rollout.counts.items() if phase in OVER)
    return over, sum(rollout.counts.values())


PAGES = (
    Page("/rollouts", list_rollouts),
    Page("/rollouts/{id}", get_rollout),
    Page("/rollouts/{id}/{verb}", change, sends=True),
)
