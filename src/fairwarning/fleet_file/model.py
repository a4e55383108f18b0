"""This module has the values of a fleet file: the fleet that an operator wants, and the plan to
reach it.
"""

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from fairwarning.core.model import EventId, InstanceName, Roster, Scope, ScopeId
from fairwarning.core.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The resources that an operator wants."""

    resources: tuple[Resource, ...] = ()


class Action(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


class FleetChange(Struct, frozen=True, kw_only=True):
    action: Action
    what: str
    """What changes, such as `instance web-3` or `scope SUBSCRIPTION/GROUP/availability-set/web`."""
    scope: ScopeId
    detail: str = ""
    events: tuple[EventId, ...] = ()
    """The pending events that this change cancels. Without force the change is then refused."""
    terminate_notice_ms: int | None = None
    """The terminate notice of an instance that is removed. None if it is not due a
    Terminate event.
    """
    without_notice: bool = False
    """Whether the instance is due a Terminate event but is removed at once."""


class Step(Struct, frozen=True, kw_only=True):
    """A step is one declaration of one scope, in one transaction."""

    before: Scope
    """The scope as it was when the plan was made."""
    roster: Roster
    without_notice: frozenset[InstanceName] = frozenset()
    """The instances that are due a Terminate event but are removed at once."""
    is_first: bool = False
    """Whether another step of the same scope follows: this one only gives up addresses."""
    says_driver: bool = True
    """Whether the declaration names a driver. If not, the roster has the default driver."""

    @property
    def scope_id(self) -> ScopeId:
        return self.before.id


class Plan(Struct, frozen=True, kw_only=True):
    changes: tuple[FleetChange, ...] = ()
    kept: tuple[ScopeId, ...] = ()
    """The scopes that are not in the file and that a file may not remove."""
    warnings: tuple[str, ...] = ()
    """What is allowed and may surprise, such as a name that two sets share."""
    declares: tuple[Step, ...] = ()
    """The declarations to submit, in this order, before `creates`."""
    creates: tuple[Scope, ...] = ()
