"""What a story can do and demand, in the words that its report uses.

Time. The server's clock stands still unless the story moves it, and begins at the real time, so
that a handler that works out how much time is left comes to the right answer. The handler's own
time is real: it is given `patience` to do what it should.
"""

from collections.abc import Callable
from typing import Any

from fairwarning.handler_check.model import Point, Verdict
from fairwarning.handler_check.observations import DRAIN, UNDO, Seen
from fairwarning.operator_api.schemas import Event
from fairwarning.testing import Server, Vm

SETTLED_POLLS = 3
"""So many polls later it has read what was there at the first, acted, and looked again."""
_NO_DIARY = "the handler wrote nothing into FAIRWARNING_CHECK_LOG, so nobody knows"


class Scene:
    def __init__(
        self,
        server: Server,
        vm: str,
        seen: Seen,
        restart: Callable[[], None],
        *,
        approves: bool,
    ) -> None:
        self.server = server
        self.vm = vm
        self.seen = seen
        self._restart = restart
        self._approves = approves
        self.happened: list[str] = []
        self.points: list[Point] = []

    def neighbour(self, name: str) -> Vm:
        return self.server.vm(name)

    def announce(self, type: str, *targets: str, **more: Any) -> Event:
        """For the handler's own VM unless it is said for whom."""
        event = self.server.schedule(type, *(targets or (self.vm,)), **more)
        state = "which has started already" if event.phase == "started" else "still to come"
        self.tell(f"{type} for {', '.join(event.resources)}, {state} (event {_short(event)})")
        return event

    def tell(self, what: str) -> None:
        self.happened.append(what)

    def finish(self, event: Event) -> None:
        """Lets time pass until it is over, and no longer: the handler's clock does not follow."""
        if self.server.event(event).phase == "scheduled":
            self.server.advance(minutes=15)
        self.server.advance(minutes=1, seconds=max(0, event.duration_seconds))
        self.tell(f"event {_short(event)} is over and gone from the document")

    def restart_handler(self) -> None:
        self.tell("the handler is killed and started again, as by the reboot itself")
        self._restart()

    def must_start(self) -> bool:
        """The first poll, without which no story can go on."""
        if self.seen.wait(self.seen.polls):
            return True
        did = (
            "no request came that is in order: it needs `Metadata: true`, an api-version that this "
            "service knows, no X-Forwarded-For and no proxy"
        )
        did = did if self.seen.is_alive else f"it {self.seen.ending}"
        self._add("ask for scheduled events", did, Verdict.FAILED)
        return False

    def must_handle(self, event: Event, *, within_s: float | None = None) -> None:
        """Approve it; a handler that never does is believed if it says that it drained."""
        should = f"prepare for event {_short(event)}" + " and approve it" * self._approves
        if self._approves:
            is_done = self.seen.wait(lambda: self.seen.approvals(event.id), within_s=within_s)
            self._add(should, "it approved" if is_done else self._nothing(event), _of(is_done))
        else:
            self._must_write(DRAIN, event, should, within_s)

    def must_notice(self, event: Event) -> None:
        """As `must_handle`, where another VM may be the one to approve."""
        should = f"prepare for event {_short(event)}; approving may be left to another VM"
        if self.seen.wait_polls(SETTLED_POLLS) and self.seen.approvals(event.id):
            self._add(should, "it approved", Verdict.PASSED)
        else:
            self._must_write(DRAIN, event, should)

    def must_ignore(self, event: Event, why: str) -> None:
        has_settled = self.seen.wait_polls(SETTLED_POLLS)
        should = f"leave event {_short(event)} alone: {why}"
        if self.seen.approvals(event.id):
            self._add(should, "it approved it", Verdict.FAILED)
        elif self.seen.diary.count(DRAIN, event.id):
            self._add(should, "it drained for it", Verdict.FAILED)
        elif not self.seen.is_alive:
            self._add(should, f"it {self.seen.ending}", Verdict.FAILED)
        elif not has_settled:
            self._add(should, self._seldom(), Verdict.NOT_OBSERVED)
        else:
            self._add(should, "it left it alone", Verdict.PASSED)

    def must_undo(self, event: Event) -> None:
        """Only its diary can show that."""
        should = f"undo what it did for event {_short(event)}, once"
        self._must_write(UNDO, event, should)

    def must_live(self) -> None:
        """Goes on polling, whatever has happened."""
        lives = self.seen.wait_polls(2)
        did = "it did" if lives else self._silence()
        self._add("go on asking", did, _of(lives))

    def must(self, should: str, is_so: bool, did: str) -> None:
        self._add(should, did, _of(is_so))

    def _must_write(
        self, word: str, event: Event, should: str, within_s: float | None = None
    ) -> None:
        count = self.seen.diary.count
        if self.seen.wait(lambda: count(word, event.id), within_s=within_s):
            times = count(word, event.id)
            did = f"it wrote `{word}`" + f" {times} times" * (times > 1)
            self._add(should, did, _of(times == 1))
        elif not self.seen.is_alive:
            self._add(should, f"it {self.seen.ending}", Verdict.FAILED)
        elif self.seen.diary.is_kept:
            self._add(should, f"it wrote no `{word}` into its log", Verdict.FAILED)
        else:
            self._add(should, _NO_DIARY, Verdict.NOT_OBSERVED)

    def _nothing(self, event: Event) -> str:
        if not self.seen.is_alive:
            return f"it {self.seen.ending}"
        drained = "it drained and did not approve" if self.seen.diary.count(DRAIN, event.id) else ""
        return drained or f"it asked {self.seen.polls()} times and did not approve"

    def _silence(self) -> str:
        if not self.seen.is_alive:
            return f"it {self.seen.ending}"
        return "it runs and does not ask any more"

    def _seldom(self) -> str:
        return "it asked too seldom to be sure; give it more time with --patience"

    def _add(self, should: str, did: str, verdict: Verdict) -> None:
        self.points.append(Point(should=should, did=did, verdict=verdict))


def _of(is_good: object) -> Verdict:
    return Verdict.PASSED if is_good else Verdict.FAILED


def _short(event: Event) -> str:
    """Enough of the id to find it in the handler's own log."""
    return event.id[:8]
