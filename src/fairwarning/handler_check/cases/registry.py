"""Defines the class of cases, and the decorator `case` that registers one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fairwarning.core.api_versions import PREVIEW
from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.fleet import VM

Play = Callable[[CaseRun], None]


def _any_name(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    title: str
    why: str
    """The mistake of real handlers that this case looks for."""
    play: Play
    vm: str = VM
    """The instance that the handler runs on, unless the user wants another one that fits."""
    fits: Callable[[str], bool] = _any_name
    """Whether an instance of this name can be the one that the handler runs on."""
    newest_version: str = PREVIEW.name
    unknown_version_status: int = 400
    begins_h: float = 0.0
    """How many hours the server's clock starts ahead of the real time. A negative number lets the
    clock show the real time after the case has moved it."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def instance(self, wanted: str) -> str:
        """Return the instance that the handler runs on. `wanted` is empty for the usual one."""
        return wanted if wanted and self.fits(wanted) else self.vm


REGISTERED: dict[str, Case] = {}


def case(
    name: str,
    title: str,
    *,
    why: str,
    vm: str = VM,
    fits: Callable[[str], bool] = _any_name,
    newest_version: str = PREVIEW.name,
    unknown_version_status: int = 400,
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
            fits=fits,
            newest_version=newest_version,
            unknown_version_status=unknown_version_status,
            begins_h=begins_h,
            environment=environment or {},
        )
        return play

    return add
