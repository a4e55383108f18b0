"""Says which scope a short name means, and how one of several instances of a name is called."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from fairwarning.core.model import ScopeId


def is_meant(id: str, name: str) -> bool:
    """Whether `name` means the id `SUB/GROUP/kind/resource`, or `…/resource/0` in a scale set.

    The end of an id is enough, and the number of the placement group may be left out.
    """
    if id == name or id.endswith(f"/{name}"):
        return True
    whole = resource_of(ScopeId(id))
    return whole != id and (whole == name or whole.endswith(f"/{name}"))


def resource_of(id: ScopeId) -> ScopeId:
    """Return the id without its placement group."""
    whole, _, group = id.rpartition("/")
    is_group = group.isdigit() and id.split("/")[2:3] == ["scale-set"]
    return ScopeId(whole) if is_group else id


def short_name(id: ScopeId, others: Collection[ScopeId]) -> str:
    """Return the shortest name that means `id` and none of `others`."""
    parts = resource_of(id).split("/")
    for length in range(1, len(parts) + 1):
        name = "/".join(parts[-length:])
        if not any(is_meant(other, name) for other in others if other != id):
            return name
    return id


def by_resource(ids: Iterable[ScopeId]) -> Mapping[str, Sequence[ScopeId]]:
    """Return the ids of all resources in order, each with its scopes."""
    found: dict[str, list[ScopeId]] = {}
    for id in sorted(ids):
        found.setdefault(resource_of(id), []).append(id)
    for groups in found.values():
        # The tenth placement group comes after the second.
        groups.sort(key=len)
    return dict(sorted(found.items()))


def by_last_parts(ids: Iterable[ScopeId]) -> dict[str, list[ScopeId]]:
    """Return the scopes by each of the last two parts of their ids."""
    found: dict[str, list[ScopeId]] = {}
    for id in ids:
        for part in id.split("/")[-2:]:
            found.setdefault(part, []).append(id)
    return found
