"""A check target is what `fairwarning driver check` acts on, and where it counts the impacts."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from fairwarning.core.model import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTarget:
    """Instances that a check may freeze, restart and delete, and the hypervisor that they run on.

    A driver's class may have a method `check_target(settings)` that returns a context manager of
    this, so that its check needs no further options.
    """

    settings: Mapping[str, str]
    handles: tuple[str, ...]
    """The driver's names for the instances. Every order has all of them."""
    type: EventType = EventType.FREEZE
    duration_s: int = 1
    acts: bool = True
    """Whether the driver acts on anything. If not, a call that comes too late does no harm."""
    count: Callable[[str], Awaitable[int]] | None = None
    """Returns how many impacts an instance has had. Without it, only the answers are checked."""
    take_away: Callable[[], Awaitable[None]] | None = None
    """Makes the hypervisor unreachable."""
    bring_back: Callable[[], Awaitable[None]] | None = None
