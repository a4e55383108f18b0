"""What a story is, and how it comes into the book."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fairwarning.handler_check.case_api import Scene
from fairwarning.handler_check.fleet import VM

Play = Callable[[Scene], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    name: str
    title: str
    why: str
    """Which fault of real handlers it looks for."""
    play: Play
    vm: str = VM
    newest_version: str = ""
    begins_h: float = 0.0
    """The server's clock begins so many hours from now, so that it is right when it matters."""
    environment: Mapping[str, str] = field(default_factory=dict)


BOOK: dict[str, Story] = {}


def story(
    name: str,
    title: str,
    *,
    why: str,
    vm: str = VM,
    newest_version: str = "",
    begins_h: float = 0.0,
    environment: Mapping[str, str] | None = None,
) -> Callable[[Play], Play]:
    def add(play: Play) -> Play:
        assert name not in BOOK
        BOOK[name] = Story(
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
