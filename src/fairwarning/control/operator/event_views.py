"""Events as others see them: in the documents of instances, and as figures."""

from msgspec.structs import replace

from fairwarning.control import shapes
from fairwarning.control.access import Role
from fairwarning.control.context import Control
from fairwarning.control.operation import Call, Operation
from fairwarning.core.api_versions import VERSIONS
from fairwarning.core.document import render, visible_events
from fairwarning.core.model import EventId


async def documents(control: Control, call: Call[shapes.NoQuery, None]) -> shapes.EventDocuments:
    scope_id, event = await control.store.find_event(EventId(call.path["id"].upper()))
    scope = await control.store.read(scope_id)
    # Whoever asks first activates the scope, and then sees incarnation 1.
    alone = replace(scope, events={event.id: event}, incarnation=max(scope.incarnation, 1))
    is_visible = bool(visible_events(alone))
    return shapes.EventDocuments(
        documents=[
            shapes.EventDocument(
                api_version=version.name,
                shown=is_visible and event.type in version.types,
                body=render(alone, version).decode(),
            )
            for version in VERSIONS
        ]
    )


async def counted(control: Control, call: Call[shapes.NoQuery, None]) -> shapes.EventCounts:
    found = await control.store.count_events()
    return shapes.EventCounts(
        counts=[
            shapes.EventCount(type=type, phase=phase, count=count)
            for (type, phase), count in sorted(found.items())
            if count
        ]
    )


OPERATIONS = (
    Operation(method="GET", path="/events/{id}/documents",
              summary="What instances see of an event, for each api-version", role=Role.VIEWER,
              handle=documents, answer=shapes.EventDocuments),
    Operation(method="GET", path="/event-counts", summary="How many events of each type and phase",
              role=Role.VIEWER, handle=counted, answer=shapes.EventCounts),
)  # fmt: skip
