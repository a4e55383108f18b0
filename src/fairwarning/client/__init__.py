"""The client library of scheduled events, for Azure and for Fairwarning alike.

    from fairwarning.client import ScheduledEvents

It needs nothing of the server, and no package but h11.
"""

from fairwarning.client.client import AsyncScheduledEvents, ScheduledEvents
from fairwarning.client.model import (
    Change,
    ChangeKind,
    Document,
    Event,
    EventsUnavailable,
    Instance,
    NotApproved,
    Status,
)
from fairwarning.client.watch_state import Seen

__all__ = [
    "AsyncScheduledEvents",
    "Change",
    "ChangeKind",
    "Document",
    "Event",
    "EventsUnavailable",
    "Instance",
    "NotApproved",
    "ScheduledEvents",
    "Seen",
    "Status",
]
