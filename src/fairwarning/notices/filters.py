"""Whether a target wants to hear of an entry. Pure."""

from fairwarning.core.model import Event, ScopeId
from fairwarning.core.transitions import kind_of
from fairwarning.engine.protocols import Entry
from fairwarning.notices.model import Filters


def may_want(filters: Filters, entry: Entry) -> bool:
    """As far as the entry alone tells: a no is final, a yes needs `wants`."""
    if kind_of(entry.transition) not in filters.kinds:
        return False
    return not filters.scopes or any(is_meant(entry.scope_id, name) for name in filters.scopes)


def wants(filters: Filters, event: Event | None) -> bool:
    """Whoever asks for some types or sources wants events only."""
    if filters.types and (event is None or event.type not in filters.types):
        return False
    return not filters.sources or (event is not None and event.source in filters.sources)


def is_meant(id: ScopeId, name: str) -> bool:
    """By the whole id, an ending of it, or the resource's name: all groups of a scale set."""
    if id == name or id.endswith(f"/{name}"):
        return True
    whole, _, group = id.rpartition("/")
    return group.isdigit() and "/scale-set/" in id and whole.endswith(f"/{name}")
