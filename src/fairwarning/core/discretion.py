"""Transitions as others may see them: without what a driver must know and nobody else."""

from msgspec.structs import replace

from fairwarning.core.transitions import RosterDeclared, Transition, Unknown

HIDDEN = "…"


def without_secrets(transition: Transition) -> Transition:
    """The settings of a driver may hold keys: a URL with a password, a command with a token."""
    if isinstance(transition, Unknown):
        return replace(transition, body=HIDDEN)
    if not isinstance(transition, RosterDeclared):
        return transition
    roster = transition.roster
    hidden = dict.fromkeys(roster.driver_settings, HIDDEN)
    return RosterDeclared(roster=replace(roster, driver_settings=hidden))
