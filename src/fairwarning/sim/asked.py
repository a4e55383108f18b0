"""What callers asked of a world, and what they were told."""

from dataclasses import dataclass

from fairwarning.core.commands import Command
from fairwarning.core.model import Actor, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    scope_id: ScopeId
    command: Command
    by: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An answer that a caller got; it must be true for ever."""

    asked: Asked
    receipt: Receipt | None
    refused: Refused | None
