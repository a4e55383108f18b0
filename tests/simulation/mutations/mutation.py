"""A mutation is a one-line patch that breaks a promise."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str
    promise: str
    """How the report of the broken promise begins."""
    seeds: tuple[int, ...] = ()
    """Known to show it quickly. They are tried first."""
    store: str = "memory"
    """Under which it shows."""
