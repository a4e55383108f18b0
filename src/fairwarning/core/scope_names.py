"""Says which scope a short name means, and how one of several instances of a name is called."""

from collections.abc import Collection

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
