"""Who asked what: told to those who watch, as tests and rehearsals do."""

from collections.abc import Callable

from msgspec import Struct

from fairwarning.core.faults import FaultKind
from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName


class Asked(Struct, frozen=True, kw_only=True):
    """A request that was in order, by an instance that we know."""

    at_ms: Instant
    instance: InstanceName
    kind: str
    """`events`, `approve`, `instance` or `versions`."""
    version: str
    user_agent: str
    body: bytes
    fault: FaultKind | None
    """What went wrong with it on purpose."""


Watcher = Callable[[Asked], None]
