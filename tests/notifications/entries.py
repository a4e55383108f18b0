"""Lines of a journal, made by hand."""

from fairwarning.core.instants import Instant
from fairwarning.core.model import Event, EventType, Phase, ScopeId, Source, operator_actor
from fairwarning.core.transitions import Scheduled, Transition
from fairwarning.engine.protocols import Entry, Position
from tests.core.builders import E1, T0, names

NINE_THIRTY = Instant(1_794_821_400_000)
WEB_ID = ScopeId("0000/default/availability-set/web")
REBOOT = Event(
    id=E1,
    type=EventType.REBOOT,
    source=Source.PLATFORM,
    phase=Phase.SCHEDULED,
    resources=names("web-0", "web-1"),
    update_domain=1,
    created_ms=T0,
    not_before_ms=NINE_THIRTY,
    description="Host server is undergoing maintenance.",
)


def entry(transition: Transition | None = None, scope_id: ScopeId = WEB_ID) -> Entry:
    return Entry(
        position=Position("17"),
        scope_id=scope_id,
        revision=3,
        at_ms=T0,
        by=operator_actor("ana"),
        why="patch day",
        transition=transition or Scheduled(event=REBOOT),
    )
