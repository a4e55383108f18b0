"""The values that the client works with: events, documents, changes and errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """Whether an event is still to come or has begun."""

    SCHEDULED = "Scheduled"
    STARTED = "Started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One announced impact, such as a reboot.

    A field that the api-version in use does not have is None or empty.
    """

    id: str
    """The event's id in upper case, as Azure writes it."""
    type: str
    """Freeze, Reboot, Redeploy, Preempt, Terminate, or a type that is newer than this client."""
    status: Status
    resources: tuple[str, ...]
    """The names of the affected VMs. Compare them with `Instance.name`, never with the hostname."""
    not_before: datetime | None = None
    """The earliest time at which the event may begin. It is None once the event has started."""
    description: str = ""
    source: str = ""
    duration_s: int | None = None
    """How long the impact lasts. It is None if this is not known."""

    def concerns(self, name: str) -> bool:
        """Return whether the event affects the VM of this name."""
        return name in self.resources

    def time_left_s(self, now: datetime) -> float:
        """Return the seconds until the event may begin. It is 0 if it has begun or has no time."""
        if self.not_before is None:
            return 0.0
        return max(0.0, (self.not_before - now).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All events that the VM's scope has now."""

    incarnation: int
    events: tuple[Event, ...] = ()

    def event(self, id: str) -> Event | None:
        """Return the event with this id, in any case. It is None if the document has none."""
        return next((each for each in self.events if each.id == id.upper()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What the service knows about this VM, from /metadata/instance."""

    name: str
    resource_group: str = ""
    subscription: str = ""
    location: str = ""
    scale_set: str = ""
    update_domain: str = ""
    fault_domain: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole response, as the service sent it."""


class ChangeKind(StrEnum):
    """What can happen to an event."""

    SCHEDULED = "scheduled"
    STARTED = "started"
    FINISHED = "finished"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that happened to an event.

    For one event, each kind is reported at most once and in the order of `ChangeKind`.
    """

    kind: ChangeKind
    event: Event
    """The event as it was last seen."""
    is_certain: bool = True
    """False if `kind` is a guess, because an event that had not started has disappeared. The
    service does not say whether such an event was cancelled or has finished.
    """


class EventsUnavailable(Exception):
    """The service gave no usable response. A later call may succeed."""


class NotApproved(Exception):
    """The service refused the approval."""
