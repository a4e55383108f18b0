"""The types of an attack and of its target."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A running server."""

    name: str
    pid: int
    metadata: str
    """HOST:PORT of the metadata endpoint."""
    control: str = ""
    """The base URL of the control plane, if the server has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    run: Callable[[Target, float], str]
    """Attacks for this many seconds, in a process of its own. Returns the result in words."""
    options: tuple[str, ...] = ()
    """Further options of `fairwarning serve`."""
    also_nginx: bool = False
    """Whether nginx can be attacked in the same way."""
