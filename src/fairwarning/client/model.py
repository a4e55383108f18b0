"""What a VM can read of its future, as values. Nothing here needs anything but Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    SCHEDULED = "Scheduled"
    STARTED = "Started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One announced impact. What the api-version in use does not have is None or empty."""

    id: str
    """In upper case, as Azure writes it."""
    type: str
    """Freeze, Reboot, Redeploy, Preempt, Terminate, or one that is younger than this client."""
    status: Status
    resources: tuple[str, ...]
    """Names of the VMs that it affects: compare with `Instance.name`, never with the hostname."""
    not_before: datetime | None = None
    """When it may begin at the earliest; None once it has started."""
    description: str = ""
    source: str = ""
    duration_s: int | None = None
    """How long the impact lasts; None if nobody knows."""

    def concerns(self, name: str) -> bool:
        return name in self.resources

    def time_left_s(self, now: datetime) -> float:
        """Until it may begin; 0 once it has."""
        if self.not_before is None:
            return 0.0
        return max(0.0, (self.not_before - now).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    incarnation: int
    events: tuple[Event, ...] = ()

    def event(self, id: str) -> Event | None:
        return next((each for each in self.events if each.id == id.upper()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Who we are, from /metadata/instance."""

    name: str
    resource_group: str = ""
    subscription: str = ""
    location: str = ""
    scale_set: str = ""
    update_domain: str = ""
    fault_domain: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """All of it, as the service said it."""


class ChangeKind(StrEnum):
    SCHEDULED = "scheduled"
    STARTED = "started"
    FINISHED = "finished"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Each happens once for an event, in this order, and some may be skipped."""

    kind: ChangeKind
    event: Event
    """As it was last seen."""
    is_certain: bool = True
    """False where the service does not say whether the event was cancelled or is over."""


class EventsUnavailable(Exception):
    """The service gave no document; asking again later may help."""


class NotApproved(Exception):
    """The service did not take the approval."""
