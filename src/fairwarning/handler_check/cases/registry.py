"""Defines the class of cases, and the decorator `case` that registers one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.fleet import VM

Play = Callable[[CaseRun], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    title: str
    why: str
    """The mistake of real handlers that this case looks for."""
    play: Play
    vm: str = VM
    newest_version: str = ""
    begins_h: float = 0.0
    """How many hours the server's clock starts ahead of the real time. A negative number lets the
    clock show the real time after the case has moved it."""
    environment: Mapping[str, str] = field(default_factory=dict)


REGISTERED: dict[str, Case] = {}


def case(
    name: str,
    title: str,
    *,
    why: str,
    vm: str = VM,
    newest_version: str = "",
    begins_h: float = 0.0,
    environment: Mapping[str, str] | None = None,
) -> Callable[[Play], Play]:
    """Register the decorated function as the case `name`."""

    def add(play: Play) -> Play:
        assert name not in REGISTERED
        REGISTERED[name] = Case(
            name=name,
            title=title,
            why=why,
            play=play,
            vm=vm,
            newest_version=newest_version,
            begins_h=begins_h,
            environment=environment or {},
        )
        return play

    return add
