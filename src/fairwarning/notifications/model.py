"""The values of notifications: targets with their filters, messages and their deliveries."""

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
    """The format of the messages to a webhook."""

    CLOUD_EVENTS = "cloudevents"
    EVENT_GRID = "eventgrid"


DEFAULT_KINDS = ("Scheduled", "Approved", "Started", "Cancelled", "Completed", "Failed")
EVENT_GRID_KINDS = ("Scheduled", "Started", "Cancelled", "Completed", "Failed")
"""The only kinds for which Azure's Event Grid has a status."""
ALL_KINDS = frozenset(
    each.__name__ for each in get_args(KnownTransition) if each not in HOUSEKEEPING
)
"""Every kind of entry that this version writes into the journal."""


class Filters(Struct, frozen=True, kw_only=True):
    """Which entries a target gets. An empty filter accepts all; `kinds` has a default."""

    types: tuple[EventType, ...] = ()
    scopes: tuple[str, ...] = ()
    """The scopes that the target wants, each by its id, the end of its id, or its resource."""
    sources: tuple[Source, ...] = ()
    kinds: tuple[str, ...] = DEFAULT_KINDS


class Template(Struct, frozen=True, kw_only=True):
    """The text of a chat message or mail, in which `$name` is replaced (see `messages.NAMES`)."""

    title: str = "$type of $resources: $kind"
    body: str = "$text\nscope $scope, not before $not_before, event $event"


class Target(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: TargetKind
    url: str
    """The address. It may hold credentials; the URL of an Apprise target always does."""
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
        """Return text for logs and tracebacks, without secrets."""
        return f"Target({self.id}, {self.name!r}, {redacted(self.url)})"


class Message(Struct, frozen=True, kw_only=True):
    """One message, with the content for both kinds of targets."""

    id: str
    """The message's id. It is the same for every try, so a receiver can recognise a repetition."""
    title: str
    text: str
    body: str
    """The body for a webhook, as JSON."""
    headers: Mapping[str, str] = {}
    """The headers for a webhook besides the signature. If empty, it gets those of a CloudEvent."""


class Delivery(Struct, frozen=True, kw_only=True):
    """A message that could not be delivered at once."""

    id: str
    target_id: str
    position: Position
    """The position of the journal entry that the message is about."""
    message: Message
    attempts: int
    next_try_ms: Instant
    last_error: str
    revivals: int = 0
    """How many times an operator has retried this delivery as a dead letter."""

    @property
    def try_key(self) -> tuple[str, int, int]:
        """Return a key that no other try has. It needs `revivals`: each resets the attempts."""
        return self.id, self.revivals, self.attempts


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of one try."""

    error: str = ""
    """Why the delivery failed; empty if it succeeded. It never holds a secret."""
    is_final: bool = False
    """Whether the message must not be tried again."""

    @property
    def is_delivered(self) -> bool:
        return not self.error


class TargetDraft(Struct, frozen=True, kw_only=True):
    """A target as the caller requests it, before it is checked and gets an id."""

    name: str
    kind: TargetKind
    url: str
    secret: str = ""
    """The signing key. If it is empty, a webhook gets a new one."""
    format: Format = Format.CLOUD_EVENTS
    filters: Filters = Filters()
    template: Template = Template()

    def __repr__(self) -> str:
        return f"TargetDraft({self.name!r}, {redacted(self.url)})"


def usual_kinds(format: Format) -> tuple[str, ...]:
    """Return the default kinds of a target with this format."""
    return EVENT_GRID_KINDS if format is Format.EVENT_GRID else DEFAULT_KINDS


Words = Mapping[str, str]
"""The values of a template's names in one message."""
