"""The page that approves several events at once, after it has shown who is affected."""

from starlette.responses import Response

from fairwarning.core.model import Phase
from fairwarning.core.refusals import Refused
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.schemas import Event
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext

CHOSEN_MAX = 200  # A page shows fewer events, and each is a request to the API.


async def preview_approval(context: PageContext) -> Response:
    """Show which events would be approved, and who is affected, before anything is done."""
    found = await _chosen(context)
    if not found:
        return context.back(said=context.t("events.none-chosen"), failed=True)
    return await context.show(
        "approve_chosen.html",
        events=found,
        instances=len({(each.scope, name) for each in found for name in each.resources}),
    )


async def approve_chosen(context: PageContext) -> Response:
    """Approve the events one by one. An event that ended meanwhile does not stop the others."""
    done, refused = 0, []
    for id in _ids(context):
        try:
            await context.ask("POST", "/events/{id}/approve", names={"id": id})
            done += 1
        except (Problem, Refused) as wrong:
            text = wrong.detail if isinstance(wrong, Problem) else wrong.message
            refused.append(context.t("events.not-approved", id=id[:8], why=text))
    said = context.t("events.approved-chosen", count=done)
    return context.go("/", said=" ".join([said, *refused]), failed=bool(refused))


async def _chosen(context: PageContext) -> list[Event]:
    found: list[Event] = [
        await context.ask("GET", "/events/{id}", names={"id": id}) for id in _ids(context)
    ]
    return [each for each in found if each.phase is Phase.SCHEDULED]


def _ids(context: PageContext) -> list[str]:
    return list(dict.fromkeys(context.lists.get("event", ())))[:CHOSEN_MAX]


PAGES = (
    Page("/events/chosen/preview", preview_approval, sends=True),
    Page("/events/chosen/approve", approve_chosen, sends=True),
)
