"""What the screen knows, as one value; and the states that it shows. Pure."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

Json = dict[str, Any]
ENTRIES_MAX = 50


class Seen(Struct, frozen=True, kw_only=True):
    scopes: tuple[Json, ...] = ()
    events: tuple[Json, ...] = ()
    """Unfinished ones."""
    entries: tuple[Json, ...] = ()
    """The last transitions, the newest last."""
    lost: str = ""
    """Why there is no connection; empty while there is one."""


def with_entries(seen: Seen, entries: Sequence[Json]) -> Seen:
    """Each position once: after a reload some may come a second time."""
    known = {entry["position"] for entry in seen.entries}
    new = [entry for entry in entries if entry["position"] not in known]
    return replace(seen, entries=(*seen.entries, *new)[-ENTRIES_MAX:])


def with_scope(seen: Seen, id: str, scope: Json | None) -> Seen:
    """The scope as it is now; None: it is gone."""
    others = [each for each in seen.scopes if each["id"] != id]
    scopes = others if scope is None else [*others, scope]
    return replace(seen, scopes=tuple(sorted(scopes, key=lambda each: str(each["id"]))))


def instance_states(scope: Json, events: Sequence[Json]) -> dict[str, str]:
    """`started` and `scheduled` come from events, else it is the power state."""
    states = {each["name"]: str(each["power"]) for each in scope["instances"]}
    for phase in ("scheduled", "started"):
        for event in events:
            if event["scope"] == scope["id"] and event["phase"] == phase:
                states |= {name: phase for name in event["resources"] if name in states}
    return states


def domains(scope: Json, events: Sequence[Json]) -> list[tuple[int, list[str]]]:
    """For each update domain the states of its instances, in the order of their names."""
    states = instance_states(scope, events)
    found: dict[int, list[str]] = {}
    for instance in sorted(scope["instances"], key=lambda each: str(each["name"])):
        found.setdefault(int(instance["updateDomain"]), []).append(states[instance["name"]])
    return sorted(found.items())


def by_urgency(seen: Seen) -> list[Json]:
    """Scopes under impact first, then those with an announcement, then the others."""

    def rank(scope: Json) -> int:
        states = set(instance_states(scope, seen.events).values())
        return 0 if "started" in states else 1 if "scheduled" in states else 2

    return sorted(seen.scopes, key=rank)
