"""What an attack is, and whom it is aimed at."""

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
    """Attacks for so many seconds, in a process of its own. Returns what was achieved, in words."""
    options: tuple[str, ...] = ()
    """Of `fairwarning serve`, beyond the usual."""
    also_nginx: bool = False
    """Whether nginx can be attacked in the same way."""
