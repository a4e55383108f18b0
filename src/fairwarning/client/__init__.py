"""The client library for scheduled events. It works with Azure and with Fairwarning.

    from fairwarning.client import ScheduledEvents

It imports nothing from the server. The only package that it needs is h11.
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
