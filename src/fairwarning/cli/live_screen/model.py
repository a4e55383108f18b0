"""The state of the live screen, and pure functions that change or read it."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

Json = dict[str, Any]
ENTRIES_MAX = 50  # More lines than a usual terminal shows.


class ScreenState(Struct, frozen=True, kw_only=True):
    scopes: tuple[Json, ...] = ()
    events: tuple[Json, ...] = ()
    """The unfinished events."""
    entries: tuple[Json, ...] = ()
    """The last transitions, the newest last."""
    lost: str = ""
    """Why there is no connection. It is empty while there is one."""


def with_entries(seen: ScreenState, entries: Sequence[Json]) -> ScreenState:
    """Add the entries that are new. After a reload, some come a second time."""
    known = {entry["position"] for entry in seen.entries}
    new = [entry for entry in entries if entry["position"] not in known]
    return replace(seen, entries=(*seen.entries, *new)[-ENTRIES_MAX:])


def with_scope(seen: ScreenState, id: str, scope: Json | None) -> ScreenState:
    """Replace or add the scope with this id, or remove it if `scope` is None."""
    others = [each for each in seen.scopes if each["id"] != id]
    scopes = others if scope is None else [*others, scope]
    return replace(seen, scopes=tuple(sorted(scopes, key=lambda each: str(each["id"]))))


def instance_states(scope: Json, events: Sequence[Json]) -> dict[str, str]:
    """Return the state of each instance by name: its event's phase, or else its power state."""
    states = {each["name"]: str(each["power"]) for each in scope["instances"]}
    for phase in ("scheduled", "started"):
        for event in events:
            if event["scope"] == scope["id"] and event["phase"] == phase:
                states |= {name: phase for name in event["resources"] if name in states}
    return states


def domains(scope: Json, events: Sequence[Json]) -> list[tuple[int, list[str]]]:
    """Return the update domains, each with its instances' states in the order of their names."""
    states = instance_states(scope, events)
    found: dict[int, list[str]] = {}
    for instance in sorted(scope["instances"], key=lambda each: str(each["name"])):
        found.setdefault(int(instance["updateDomain"]), []).append(states[instance["name"]])
    return sorted(found.items())


def by_urgency(seen: ScreenState) -> list[Json]:
    """Return the scopes. Those with a started event are first, then those with a scheduled one."""

    def rank(scope: Json) -> int:
        states = set(instance_states(scope, seen.events).values())
        return 0 if "started" in states else 1 if "scheduled" in states else 2

    return sorted(seen.scopes, key=rank)
