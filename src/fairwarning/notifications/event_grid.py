"""Makes messages in the format of Azure's Event Grid. Pure.

Azure knows four statuses. A failed event is reported as Completed, because its impact has begun
and ended; Canceled would mean that there was no impact.
"""

from collections.abc import Sequence
from uuid import NAMESPACE_URL, uuid5

from fairwarning.core.instants import Instant, format_rfc1123, format_rfc3339
from fairwarning.core.model import Event, EventId, Phase, ScopeId, ScopeKind
from fairwarning.engine.protocols import Entry
from fairwarning.notifications.messages import in_sentences, to_json, trial_text
from fairwarning.notifications.model import Message, Template

EVENT_TYPE = "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted"
VALIDATION_TYPE = "Microsoft.EventGrid.SubscriptionValidationEvent"
DATA_VERSION = "3.0"
API_VERSION = "2024-07-01"
DOCUMENT_VERSION = "2020-07-01"
_TYPES = {
    ScopeKind.VM: "virtualMachines",
    ScopeKind.AVAILABILITY_SET: "availabilitySets",
    ScopeKind.SCALE_SET: "virtualMachineScaleSets",
    ScopeKind.CLOUD_SERVICE: "cloudServices",
}
_STATUS = {
    Phase.SCHEDULED: "Scheduled",
    Phase.STARTED: "Started",
    Phase.COMPLETED: "Completed",
    Phase.CANCELLED: "Canceled",
    Phase.FAILED: "Completed",
}


def owner_id(scope_id: ScopeId) -> str:
    """Return the Azure resource id of the resource that the scope belongs to."""
    subscription, group, kind, name, *_ = scope_id.split("/")
    return (
        f"/subscriptions/{subscription}/resourceGroups/{group}"
        f"/providers/Microsoft.Compute/{_TYPES[ScopeKind(kind)]}/{name}"
    )


def azure_id(scope_id: ScopeId, event_id: EventId) -> str:
    return f"{owner_id(scope_id)}/providers/Microsoft.Maintenance/scheduledevents/{event_id}"


def properties_of(event: Event) -> dict[str, object]:
    is_scheduled = event.phase is Phase.SCHEDULED
    return {
        "EventId": event.id,
        "EventStatus": _STATUS[event.phase],
        "EventType": event.type,
        "ResourceType": "VirtualMachine",
        "Resources": list(event.resources),
        "NotBefore": format_rfc1123(event.not_before_ms) if is_scheduled else "",
        "Description": event.description,
        "EventSource": event.source,
        "DurationInSeconds": event.duration_s,
        "ScheduledEventApiVersion": DOCUMENT_VERSION,
    }


def grid_event(entry: Entry, event: Event, location: str) -> dict[str, object]:
    id = azure_id(entry.scope_id, event.id)
    return {
        "id": _guid(f"{entry.scope_id}/{entry.at_ms}/{entry.position}"),
        "topic": f"/subscriptions/{entry.scope_id.partition('/')[0]}",
        "subject": id,
        "data": {
            "resourceInfo": {
                "id": id,
                "name": event.id,
                "type": "microsoft.maintenance/scheduledEvents",
                "location": location,
                "properties": properties_of(event),
            },
            "operationalInfo": {"resourceEventTime": format_rfc3339(entry.at_ms)},
            "apiVersion": API_VERSION,
        },
        "eventType": EVENT_TYPE,
        "dataVersion": DATA_VERSION,
        "metadataVersion": "1",
        "eventTime": format_rfc3339(entry.at_ms),
    }


def grid_message(
    entry: Entry,
    event: Event,
    location: str,
    template: Template,
    more: Sequence[dict[str, object]] = (),
) -> Message:
    """Return the message about `entry`. `event` is the event as it was after the entry.

    `more` are further events of Event Grid that the message carries.
    """
    title, text = in_sentences(entry, event, template)
    body = grid_event(entry, event, location)
    return Message(
        id=str(body["id"]),
        title=title,
        text=text,
        body=to_json([body, *more]),
        headers=_headers("Notification", DATA_VERSION),
    )


def grid_trial(id: str, name: str, now: Instant) -> Message:
    """Return a test message: Event Grid's validation handshake. The response to it is ignored."""
    body = {
        "id": _guid(id),
        "topic": "/subscriptions",
        "subject": "",
        "data": {"validationCode": _guid(f"{id}/code")},
        "eventType": VALIDATION_TYPE,
        "dataVersion": "2",
        "metadataVersion": "1",
        "eventTime": format_rfc3339(now),
    }
    return Message(
        id=id,
        title="Fairwarning: a test",
        text=trial_text(name),
        body=to_json([body]),
        headers=_headers("SubscriptionValidation", "2"),
    )


def _headers(event_type: str, data_version: str) -> dict[str, str]:
    return {
        "content-type": "application/json; charset=utf-8",
        "aeg-event-type": event_type,
        "aeg-data-version": data_version,
        "aeg-metadata-version": "1",
    }


def _guid(text: str) -> str:
    """Return a GUID that is always the same for the same text."""
    return str(uuid5(NAMESPACE_URL, f"fairwarning:{text}"))
