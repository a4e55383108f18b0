"""The route that lists the journal, newest entry first."""

from fairwarning.common.loop_slices import map_in_slices
from fairwarning.core.model import EventId
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import checked_position
from fairwarning.operator_api.resolve_names import find_past_scope
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.to_schema import entry_of


async def list_history(control: Control, call: Call[schemas.HistoryQuery, None]) -> schemas.Entries:
    query = call.query
    found = await control.store.history(
        before=None if query.after is None else await checked_position(control.store, query.after),
        scope_id=None if query.scope is None else await find_past_scope(control, query.scope),
        event_id=None if query.event is None else EventId(query.event.upper()),
        limit=query.limit,
    )
    return schemas.Entries(
        entries=await map_in_slices(entry_of, found),
        next=found[-1].position if len(found) == query.limit else None,
    )


ROUTES = (
    Route(method="GET", path="/history", summary="What happened, newest first", role=Role.VIEWER,
          handle=list_history, query=schemas.HistoryQuery, answer=schemas.Entries),
)  # fmt: skip
