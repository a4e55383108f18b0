"""Routes for an event as instances see it in each api-version, and for counts of events."""

from msgspec.structs import replace

from fairwarning.core.api_versions import VERSIONS
from fairwarning.core.document import render, visible_events
from fairwarning.core.model import EventId
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.route import Call, Route


async def list_event_documents(
    control: Control, call: Call[schemas.NoQuery, None]
) -> schemas.EventDocuments:
    scope_id, event = await control.store.find_event(EventId(call.path["id"].upper()))
    scope = await control.store.read(scope_id)
    # The first poll activates a scope and sees incarnation 1.
    alone = replace(scope, events={event.id: event}, incarnation=max(scope.incarnation, 1))
    is_visible = bool(visible_events(alone))
    return schemas.EventDocuments(
        documents=[
            schemas.EventDocument(
                api_version=version.name,
                shown=is_visible and event.type in version.types,
                body=render(alone, version).decode(),
            )
            for version in VERSIONS
        ]
    )


async def count_events(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.EventCounts:
    found = await control.store.count_events()
    return schemas.EventCounts(
        counts=[
            schemas.EventCount(type=type, phase=phase, count=count)
            for (type, phase), count in sorted(found.items())
            if count
        ]
    )


ROUTES = (
    Route(method="GET", path="/events/{id}/documents",
          summary="What instances see of an event, for each api-version", role=Role.VIEWER,
          handle=list_event_documents, answer=schemas.EventDocuments),
    Route(method="GET", path="/event-counts", summary="How many events of each type and phase",
          role=Role.VIEWER, handle=count_events, answer=schemas.EventCounts),
)  # fmt: skip
