"""What a handler says about itself: lines in the file that FAIRWARNING_CHECK_LOG names.

`drain ID` when it begins to prepare for an event, `undo ID` when it takes that back. A handler
that writes none is judged by its requests alone.
"""

from pathlib import Path

DRAIN = "drain"
UNDO = "undo"


class Diary:
    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_kept(self) -> bool:
        """Whether the handler has written anything into it."""
        return bool(self._lines())

    def count(self, word: str, event_id: str) -> int:
        return self._lines().count((word, event_id.upper()))

    def drained(self) -> list[str]:
        """Ids, each once, in order."""
        return [*dict.fromkeys(id for word, id in self._lines() if word == DRAIN)]

    def _lines(self) -> list[tuple[str, str]]:
        if not self._path.exists():
            return []
        parts = (line.split() for line in self._path.read_text(errors="replace").splitlines())
        return [(part[0].lower(), part[1].upper()) for part in parts if len(part) >= 2]
