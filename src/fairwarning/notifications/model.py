"""Who is told of what, and the messages that are still on their way. Values only."""

from collections.abc import Mapping
from enum import StrEnum
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.common.url_redaction import redacted
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, EventType, Source
from fairwarning.core.transitions import HOUSEKEEPING, KnownTransition
from fairwarning.engine.protocols import Position


class TargetKind(StrEnum):
    WEBHOOK = "webhook"
    APPRISE = "apprise"


class Format(StrEnum):
    """What the messages to a webhook look like."""

    CLOUD_EVENTS = "cloudevents"
    EVENT_GRID = "eventgrid"


DEFAULT_KINDS = ("Scheduled", "Approved", "Started", "Cancelled", "Completed", "Failed")
EVENT_GRID_KINDS = ("Scheduled", "Started", "Cancelled", "Completed", "Failed")
"""Azure's Event Grid has a status for each of these, and for nothing else."""
ALL_KINDS = frozenset(
    each.__name__ for each in get_args(KnownTransition) if each not in HOUSEKEEPING
)
"""Every kind of line that this version writes into the journal."""


class Filters(Struct, frozen=True, kw_only=True):
    """What a target wants to hear of. Empty: any; but for the kinds, which have a default."""

    types: tuple[EventType, ...] = ()
    scopes: tuple[str, ...] = ()
    """Ids, endings of ids, or names of resources."""
    sources: tuple[Source, ...] = ()
    kinds: tuple[str, ...] = DEFAULT_KINDS


class Template(Struct, frozen=True, kw_only=True):
    """The words of a chat message or mail; `$name` is replaced, see `messages.NAMES`."""

    title: str = "$type of $resources: $kind"
    body: str = "$text\nscope $scope, not before $not_before, event $event"


class Target(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: TargetKind
    url: str
    """Of an Apprise target it carries credentials, and of a webhook it may."""
    secret: str = ""
    """The signing key of a webhook."""
    format: Format = Format.CLOUD_EVENTS
    filters: Filters = Filters()
    template: Template = Template()
    created_ms: Instant
    created_by: Actor

    def without_secrets(self) -> "Target":
        return replace(self, url=redacted(self.url), secret="")

    def __repr__(self) -> str:
        """For logs and tracebacks, so without secrets."""
        return f"Target({self.id}, {self.name!r}, {redacted(self.url)})"


class Message(Struct, frozen=True, kw_only=True):
    """What is told, ready for either kind of target."""

    id: str
    """The same for every try, so that a receiver can tell a repetition."""
    title: str
    text: str
    body: str
    """What a webhook gets, as JSON."""
    headers: Mapping[str, str] = {}
    """Of a webhook, beside the signature; empty: those of a CloudEvent."""


class Delivery(Struct, frozen=True, kw_only=True):
    """A message that could not be delivered at once."""

    id: str
    target_id: str
    position: Position
    """The line of the journal that it tells of."""
    message: Message
    attempts: int
    next_try_ms: Instant
    last_error: str
    revivals: int = 0
    """How often somebody had it tried again from the beginning after it was a dead letter."""

    @property
    def try_key(self) -> tuple[str, int, int]:
        """No other try has the same: each revival begins again with attempt 0."""
        return self.id, self.revivals, self.attempts


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one try."""

    error: str = ""
    """Empty: delivered. Never holds a secret."""
    is_final: bool = False
    """The receiver wants no more tries."""

    @property
    def is_delivered(self) -> bool:
        return not self.error


class TargetDraft(Struct, frozen=True, kw_only=True):
    """A target as somebody asks for it, before it is checked and has an id."""

    name: str
    kind: TargetKind
    url: str
    secret: str = ""
    """Empty: a webhook gets a new one."""
    format: Format = Format.CLOUD_EVENTS
    filters: Filters = Filters()
    template: Template = Template()

    def __repr__(self) -> str:
        return f"TargetDraft({self.name!r}, {redacted(self.url)})"


def usual_kinds(format: Format) -> tuple[str, ...]:
    """What a target hears of that does not say."""
    return EVENT_GRID_KINDS if format is Format.EVENT_GRID else DEFAULT_KINDS


Words = Mapping[str, str]
"""What a template's names stand for in one message."""
