"""Makes the pre- and post-maintenance events of maintenance configurations, as Event Grid has them.

A configuration is assigned to a resource through ARM. Each maintenance of the platform on such a
resource has a pre-maintenance event when it is scheduled, and a post-maintenance event when it is
over. They are sent in one message with the event of the scheduled event itself.
"""

import msgspec
from msgspec import Struct

from fairwarning.core.instants import SECOND_MS, Instant, format_rfc3339, later, to_datetime
from fairwarning.core.model import Event, Phase, ScopeId, ScopeKind, Source
from fairwarning.core.transitions import Completed, Failed, Scheduled
from fairwarning.engine.protocols import Entry, Store
from fairwarning.notifications.event_grid import owner_id

ASSIGNMENTS = "Microsoft.Maintenance/configurationAssignments"
PRE = "Microsoft.Maintenance.PreMaintenanceEvent"
POST = "Microsoft.Maintenance.PostMaintenanceEvent"
_RECORDS = "arm"
"""The kind of records in which ARM stores its resources, by their id in lower case."""
_ASSIGNMENTS_MAX = 100


class _Properties(Struct, frozen=True):
    configuration: str = msgspec.field(name="maintenanceConfigurationId")


class _Body(Struct, frozen=True):
    properties: _Properties


class _Assignment(Struct, frozen=True):
    """The part of a stored assignment that matters here."""

    body: _Body


async def configurations_for(store: Store, scope_id: ScopeId, event: Event) -> list[str]:
    """Return the ids of the configurations that are assigned to the resource of the event, or to
    one of its VMs.
    """
    owner = owner_id(scope_id)
    owners = [owner]
    if scope_id.split("/")[2] != ScopeKind.VM:
        place = owner.rpartition("/providers/")[0]
        vms = f"{place}/providers/Microsoft.Compute/virtualMachines"
        owners += [f"{vms}/{name}" for name in event.resources]
    found: dict[str, str] = {}
    for id in owners:
        start = f"{id}/providers/{ASSIGNMENTS}/".lower()
        page = await store.records(
            _RECORDS, after=start, until=start + "\U0010ffff", limit=_ASSIGNMENTS_MAX
        )
        for record in page:
            assignment = msgspec.json.decode(record.body, type=_Assignment)
            configuration = assignment.body.properties.configuration
            found.setdefault(configuration.lower(), configuration)
    return list(found.values())


async def maintenance_events(store: Store, entry: Entry, event: Event) -> list[dict[str, object]]:
    """Return the pre- or post-maintenance events of this entry. Most entries have none."""
    kind = _kind(entry)
    if kind is None or event.source is not Source.PLATFORM:
        return []
    configurations = await configurations_for(store, entry.scope_id, event)
    return [maintenance_event(kind, each, entry, event) for each in configurations]


def _kind(entry: Entry) -> str | None:
    match entry.transition:
        case Scheduled():
            return PRE
        case Completed() | Failed():
            return POST
        case _:
            return None


def maintenance_event(
    kind: str, configuration: str, entry: Entry, event: Event
) -> dict[str, object]:
    start = event.not_before_ms
    # The time of the run is part of its id, so that the events of one run have the same.
    run = f"{to_datetime(start):%Y%m%d%H%M%S}"
    id = f"{configuration}/providers/microsoft.maintenance/applyupdates/{run}"
    data: dict[str, object] = {"correlationId": id, "maintenanceConfigurationId": configuration}
    if kind == POST:
        data["status"] = "Succeeded" if event.phase is Phase.COMPLETED else "Failed"
    data |= {
        "startDateTime": format_rfc3339(start),
        "endDateTime": format_rfc3339(_end(event, start)),
        "resourceSubscriptionIds": [entry.scope_id.partition("/")[0]],
    }
    if kind == PRE:
        data["cancellationCutOffDateTime"] = format_rfc3339(start)
    return {
        "id": id,
        "topic": configuration,
        "subject": configuration.rpartition("/")[2],
        "data": data,
        "eventType": kind,
        "eventTime": format_rfc3339(entry.at_ms),
        "dataVersion": "1.0",
        "metadataVersion": "1",
    }


def _end(event: Event, start: Instant) -> Instant:
    if event.ended_ms is not None:
        return event.ended_ms
    return later(start, max(event.duration_s, 0) * SECOND_MS)
