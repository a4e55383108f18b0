"""Whether the next commit may run in the event loop, which spares a caller two changes of thread.

Theory of operation. Those take 0.2 ms here, which is as long as the commit on a quick disk.
But a commit in the event loop holds up everybody else, so it is only done after a row of
quick ones; a disk that is slow to sync never gets there, and one slow commit ends the row.
It is only done for one who is alone, too: callers who come together are better served by the
thread, which commits for all of them at once.
"""

QUICK_S = 0.002
ROW = 8


class Pace:
    def __init__(self, row: int = ROW) -> None:
        self._row = row
        self._left = row

    @property
    def is_steady(self) -> bool:
        """So many commits in a row were quick, and each had only one caller."""
        return self._left <= 0

    def note(self, sync_s: float, *, alone: bool) -> None:
        """How long the disk took for a commit; 0 if there was nothing to write."""
        if not alone or sync_s > QUICK_S:
            self.break_off()
        elif sync_s:
            self._left -= 1

    def break_off(self) -> None:
        self._left = self._row
