"""A scope and the transitions that are being decided on it. Lives for one decision."""

from fairwarning.core.lifecycle import apply
from fairwarning.core.model import Scope
from fairwarning.core.transitions import ScopeTransition


class Draft:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.transitions: list[ScopeTransition] = []

    def add(self, transition: ScopeTransition) -> None:
        self.scope = apply(self.scope, transition)
        self.transitions.append(transition)
