"""This module makes the document that an instance sees, in the form of an api-version. The order of
keys, the compact form and the types are those of real answers of Azure.
"""

import json
from collections.abc import Iterable
from zlib import crc32

from fairwarning.core.api_versions import ApiVersion
from fairwarning.core.instants import Instant, format_rfc1123
from fairwarning.core.model import Event, InstanceName, Phase, Scope, ScopeKind

_WIRE_STATUS = {Phase.SCHEDULED: "Scheduled", Phase.STARTED: "Started"}


def visible_events(scope: Scope) -> tuple[Event, ...]:
    """Return the events that instances see, oldest first, so that the order never changes."""
    if not scope.events:
        return ()
    shown = [each for each in scope.events.values() if each.announced and each.ended_ms is None]
    shown.sort(key=lambda each: (each.created_ms, each.id))
    return tuple(shown)


def visible_content(scope: Scope) -> tuple[tuple[str, Phase], ...]:
    """Return the id and phase of each visible event. Equal documents have equal ids and phases."""
    return tuple((each.id, each.phase) for each in visible_events(scope))


def document_tag(activated_ms: Instant | None, incarnation: int, events: Iterable[Event]) -> str:
    """Return the HTTP entity tag of a document, made from its incarnation, activation and content.
    The content is in the tag because the store may lose a document and give its number to another.
    """
    said = "".join(f"{e.id} {e.phase} {e.created_ms} {e.not_before_ms}\n" for e in events)
    return f'"{incarnation}-{activated_ms or 0:x}-{crc32(said.encode()):08x}"'


def render(scope: Scope, version: ApiVersion) -> bytes:
    document = {
        "DocumentIncarnation": scope.incarnation,
        "Events": [
            _project(scope.roster.kind, event, version)
            for event in visible_events(scope)
            if event.type in version.types
        ],
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _project(kind: ScopeKind, event: Event, version: ApiVersion) -> dict[str, object]:
    is_scheduled = event.phase is Phase.SCHEDULED
    fields: dict[str, object] = {
        "EventId": event.id,
        "EventStatus": _WIRE_STATUS[event.phase],
        "EventType": event.type,
        "ResourceType": "VirtualMachine",
        "Resources": [_wire_name(kind, name, version) for name in event.resources],
        "NotBefore": format_rfc1123(event.not_before_ms) if is_scheduled else "",
    }
    if version.has_description:
        fields["Description"] = event.description
    if version.has_source:
        fields["EventSource"] = event.source
    if version.has_duration:
        fields["DurationInSeconds"] = event.duration_s
    return fields


def _wire_name(kind: ScopeKind, name: InstanceName, version: ApiVersion) -> str:
    has_prefix = version.prefixes_underscore and kind is not ScopeKind.CLOUD_SERVICE
    return f"_{name}" if has_prefix else name
