"""This module collects the mistakes in a fleet file: what is wrong, and where."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairwarning.common.toml_lines import Path
from fairwarning.common.toml_table import Mistake
from fairwarning.core.refusals import Refused

MISTAKES_MAX = 50
"""Reading ends after so many mistakes. More are not read at once, and a report stays short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMistake(Mistake):
    """A mistake in a fleet file, which may also be JSON. Then it has no line."""

    pointer: str | None = None
    """The JSON pointer of the mistake (RFC 6901). It is empty for the whole document, and None if
    it is not known.
    """

    def __str__(self) -> str:
        if self.line is None and self.pointer:
            return f"{self.pointer}: {self.message}"
        return Mistake.__str__(self)


class FleetProblem(Exception):
    """A fleet file has mistakes. `mistakes` lists the first 50 of them. The other attributes are
    those of the first one.
    """

    def __init__(self, mistakes: Sequence[FleetMistake]) -> None:
        super().__init__("; ".join(str(each) for each in mistakes))
        self.mistakes = tuple(mistakes)
        first = mistakes[0]
        self.message, self.line, self.pointer = first.message, first.line, first.pointer


class TooManyInstances(FleetProblem):
    """A declaration has more instances than its reader allows."""


class TooManyMistakes(Exception):
    """The file has `MISTAKES_MAX` mistakes, so the rest of it is not read."""


class TooManyInstancesNoted(Exception):
    """The file has too many instances, which is noted as a mistake. The rest of it is not read."""


class Mistakes:
    """The mistakes that were found in one file so far."""

    def __init__(self) -> None:
        self._found: list[tuple[Path, str, Path | None]] = []
        self._wrong: set[Path] = set()
        self.reports = 0
        """How often a mistake was reported. A mistake that is reported again counts too."""

    def __bool__(self) -> bool:
        return bool(self._found)

    def note(self, path: Path, message: str, *, first: Path | None, shown_at: Path) -> None:
        """Note a mistake, unless the value at `path`, or one around it, is known to be wrong."""
        self.reports += 1
        if self.is_wrong(path):
            return
        self._wrong.add(path)
        self._found.append((shown_at, message, first))
        if len(self._found) >= MISTAKES_MAX:
            raise TooManyMistakes

    def ignore(self, path: Path) -> None:
        """Note no further mistake at this path."""
        self._wrong.add(path)

    def is_wrong(self, path: Path) -> bool:
        """Return whether the value at this path, or one that contains it, has a mistake."""
        return bool(self._wrong) and any(path[:end] in self._wrong for end in range(len(path) + 1))

    def has_below(self, path: Path) -> bool:
        """Return whether the value at this path, or one inside it, has a mistake."""
        return any(each[: len(path)] == path for each in self._wrong)

    def in_toml(self, line_of: Callable[[Path], int]) -> list[FleetMistake]:
        """Return the mistakes in the order of their lines."""
        found = self._described(line_of, lambda path: f"line {line_of(path)}")
        return sorted(found, key=lambda each: each.line or 0)

    def in_json(self) -> list[FleetMistake]:
        return self._described(None, pointer_of)

    def _described(
        self, line_of: Callable[[Path], int] | None, name: Callable[[Path], str]
    ) -> list[FleetMistake]:
        return [
            FleetMistake(
                message=message if first is None else f"{message} (first in {name(first)})",
                line=None if line_of is None else line_of(path),
                pointer=pointer_of(path),
            )
            for path, message, first in self._found
        ]


class Where:
    """A place in a fleet file, at which a mistake can be noted. If a Refused is raised inside `with
    where:`, it is noted as a mistake at this place.

    This is a plain class, because a large file needs one for each of its values.
    """

    __slots__ = ("mistakes", "path")

    def __init__(self, path: Path, mistakes: Mistakes) -> None:
        self.path = path
        self.mistakes = mistakes

    def __getitem__(self, key: str | int) -> "Where":
        return Where((*self.path, key), self.mistakes)

    def inside(self, *keys: str | int) -> "Where":
        return Where((*self.path, *keys), self.mistakes)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, Refused):
            self.wrong(error.message)
        return isinstance(error, Refused)

    @property
    def is_wrong(self) -> bool:
        return self.mistakes.is_wrong(self.path)

    def wrong(
        self, message: str, *, first: Path | None = None, shown_at: Path | None = None
    ) -> None:
        """Note a mistake here. `first` is where the same thing was declared before. The mistake is
        reported at `shown_at` if the value itself is missing.
        """
        shown_at = self.path if shown_at is None else shown_at
        self.mistakes.note(self.path, message, first=first, shown_at=shown_at)

    def ignore(self) -> None:
        """Note no further mistake here."""
        self.mistakes.ignore(self.path)


def pointer_of(path: Path) -> str:
    parts = (str(each).replace("~", "~0").replace("/", "~1") for each in path)
    return "".join(f"/{part}" for part in parts)
