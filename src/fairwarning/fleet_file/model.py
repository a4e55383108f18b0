"""The values of a fleet file: the fleet that an operator wants, and the plan that leads there."""

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from fairwarning.core.model import EventId, InstanceName, Roster, Scope, ScopeId
from fairwarning.core.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The resources that are to be there."""

    resources: tuple[Resource, ...] = ()


class Action(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


class FleetChange(Struct, frozen=True, kw_only=True):
    action: Action
    what: str
    """What changes: `instance web-3`, or `scope SUBSCRIPTION/GROUP/availability-set/web`."""
    scope: ScopeId
    detail: str = ""
    events: tuple[EventId, ...] = ()
    """Pending events that this cancels; without force it is refused."""
    terminate_notice_ms: int | None = None
    """How long before it leaves an instance is told that is due a Terminate event."""
    without_notice: bool = False
    """Whether an instance that is due a Terminate event leaves at once all the same."""


class Step(Struct, frozen=True, kw_only=True):
    """A step is one declaration, in one transaction."""

    before: Scope
    """The scope as it was when the plan was made."""
    roster: Roster
    without_notice: frozenset[InstanceName] = frozenset()
    """The instances that are due a Terminate event and are removed at once."""
    says_driver: bool = True
    """False if the declaration leaves the driver out, so that the roster has the default."""

    @property
    def scope_id(self) -> ScopeId:
        return self.before.id


class Plan(Struct, frozen=True, kw_only=True):
    changes: tuple[FleetChange, ...] = ()
    kept: tuple[ScopeId, ...] = ()
    """The scopes that are not in the file, and are not the file's to remove."""
    declares: tuple[Step, ...] = ()
    """To be submitted as Declare, in this order, before anything is created."""
    creates: tuple[Scope, ...] = ()
