"""Defines what a case can do to a handler and require of it, and writes the report's texts.

The server's clock stands still unless the case moves it. It starts at the real time, so that a
handler computes the right time until an event. The handler runs in real time, and has `patience`
for each action that a case requires.
"""

from collections.abc import Callable, Sequence
from typing import Any

from fairwarning.handler_check.fleet import Instances
from fairwarning.handler_check.model import Point, Verdict
from fairwarning.handler_check.observations import DRAIN, SETTLED_POLLS, UNDO, Observations
from fairwarning.operator_api.schemas import Event
from fairwarning.testing import Server, Vm

REPEATS_POLLS = 3
"""A handler that does its work again does so within this many polls."""
_TOO_FEW_POLLS = "it asked too seldom to be sure; give it more time with --patience"
_NO_LOG = "the handler wrote nothing into FAIRWARNING_CHECK_LOG, so nobody knows"


class CaseRun:
    """One run of a case against one handler. Each method `must_…` adds a point to the result."""

    def __init__(
        self,
        server: Server,
        instances: Instances,
        observed: Observations,
        restart: Callable[[], None],
        *,
        approves: bool,
    ) -> None:
        self.server = server
        self.vm = instances.vm
        self.twin = instances.twin
        self.neighbour = instances.neighbour
        self.similar = instances.similar
        self.observed = observed
        self._restart = restart
        self._approves = approves
        self.happened: list[str] = []
        self.points: list[Point] = []
        self.crash = ""
        """How the handler ended by itself. It is empty if it did not."""

    def as_neighbour(self) -> Vm:
        """Return the neighbour, to send requests as its handler would."""
        return self.server.vm(self.neighbour)

    def announce(self, type: str, *targets: str, **more: Any) -> Event:
        """Schedule an event, for the handler's own VM unless targets are given."""
        event = self.server.schedule(type, *(targets or (self.vm,)), **more)
        state = "which has started already" if event.phase == "started" else "still to come"
        self.tell(f"{type} for {', '.join(event.resources)}, {state} (event {_short(event)})")
        return event

    def tell(self, what: str) -> None:
        """Add a line to the report's list of what happened."""
        self.happened.append(what)

    def start_now(self, event: Event) -> None:
        """Move the server's clock until the event has started, if nobody has approved it."""
        if self.server.event(event).phase == "scheduled":
            self.server.advance(minutes=15)

    def finish(self, event: Event) -> None:
        """Move the server's clock until the event is over. The handler's clock does not move."""
        self.start_now(event)
        self.server.advance(minutes=1, seconds=max(0, event.duration_seconds))
        self.tell(f"event {_short(event)} is over and gone from the document")

    def restart_handler(self) -> None:
        self.tell("the handler is killed and started again, as by the reboot itself")
        mark = self.observed.mark()
        self._restart()
        self.observed.wait(lambda: self.observed.polls(since=mark))

    def learn_whether_it_logs(self) -> None:
        """Let an event of this VM alone come and go. Nothing is required of the handler.

        Afterwards its log shows whether it writes one, so that a missing line means something.
        """
        event = self.announce("Reboot")
        self.observed.wait(lambda: self.observed.log.is_written)
        self.finish(event)
        self.observed.wait_polls(2)

    def must_start(self) -> bool:
        """Require a first poll. Returns whether it came; without it, the case cannot go on."""
        if self.observed.wait(self.observed.polls):
            # The first poll activates the scope, so it may be answered after the case has begun,
            # as if its faults were not set yet. The next poll shows that the answer was read.
            self.observed.wait_polls(1)
            return True
        did = "" if self.observed.is_alive else f"it {self.observed.ending}; "
        asked = [*self.observed.refusals(), *self.observed.other_requests()]
        did += f"it asked {'; '.join(asked)}" if asked else "no request came"
        self._add("ask for scheduled events", did, Verdict.FAILED)
        return False

    def must_handle(self, event: Event, *, within_s: float | None = None, since: int = 0) -> None:
        """Require an approval, or a drain in the log if the handler is one that never approves.

        Approvals before the mark `since` do not count.
        """
        should = f"prepare for event {_short(event)}" + " and approve it" * self._approves
        if self._approves:
            is_done = self.observed.wait(
                lambda: self.observed.approvals(event.id, since=since), within_s=within_s
            )
            did = "it approved" if is_done else self._missing_approval(event)
            self._add(should, did, _verdict(is_done), event)
        else:
            self._must_log(DRAIN, [event], should, within_s)

    def must_notice(self, event: Event) -> None:
        """Require a drain in the log or an approval, which the handler need not send."""
        should = f"prepare for event {_short(event)}; approving may be left to others"
        self.observed.wait(lambda: self.observed.has_acted_on(event.id))
        if self.observed.approvals(event.id):
            self._add(should, "it approved", Verdict.PASSED, event)
        else:
            self._must_log(DRAIN, [event], should)

    def must_ignore(self, event: Event, why: str) -> None:
        """Require that the handler neither approves the event nor drains for it."""
        has_settled = self.observed.wait_polls(SETTLED_POLLS)
        should = f"leave event {_short(event)} alone: {why}"
        if self.observed.approvals(event.id):
            self._add(should, "it approved it", Verdict.FAILED, event)
        elif self.observed.log.count(DRAIN, event.id):
            self._add(should, "it drained for it", Verdict.FAILED, event)
        elif not self.observed.is_alive:
            self._add(should, f"it {self.observed.ending}", Verdict.FAILED, event)
        elif not has_settled:
            self._add(should, _TOO_FEW_POLLS, Verdict.NOT_OBSERVED, event)
        else:
            self._add(should, "it left it alone", Verdict.PASSED, event)

    def must_undo(self, event: Event, *same_drain: Event) -> None:
        """Require an undo of the event in the handler's log, and no second one in some more polls.

        A handler may drain once for several events. Then an undo of any one of them will do.
        """
        events = (event, *same_drain)
        which = " and ".join(_short(each) for each in events)
        should = f"undo what it did for event {which}, once"
        if self.observed.wait(lambda: self._most(UNDO, events)):
            self.observed.wait_polls(REPEATS_POLLS)
        self._must_log(UNDO, events, should, most=1)

    def must_stay_drained(self, event: Event, why: str) -> None:
        """Require that the handler has undone nothing so far, and that it still runs.

        The case must have let the handler poll until it has read what might mislead it.
        """
        should = f"stay prepared for event {_short(event)}: {why}"
        if self.observed.log.count(UNDO, event.id):
            self._add(should, "it wrote `undo`", Verdict.FAILED, event)
        elif not self.observed.is_alive:
            self._add(should, f"it {self.observed.ending}", Verdict.FAILED, event)
        elif self.observed.log.is_written:
            self._add(should, "it did", Verdict.PASSED, event)
        else:
            self._add(should, _NO_LOG, Verdict.NOT_OBSERVED, event)

    def must_prepare_once(self, event: Event) -> None:
        drains = self.observed.log.count(DRAIN, event.id)
        did = f"it drained {drains} times" if drains else "it did"
        self._add("prepare once", did, _verdict(drains <= 1), event)

    def must_keep_polling(self) -> None:
        """Require that the handler still polls."""
        lives = self.observed.wait_polls(2)
        did = "it did" if lives else self._silence()
        self._add("go on asking", did, _verdict(lives))

    def must(self, should: str, is_so: bool, did: str, event: Event | None = None) -> None:
        """Require that `is_so` is true. `should` and `did` are texts for the report."""
        self._add(should, did, _verdict(is_so), event)

    def _must_log(
        self,
        word: str,
        events: Sequence[Event],
        should: str,
        within_s: float | None = None,
        *,
        most: int | None = None,
    ) -> None:
        """Require this word in the log, about any of the events and at most `most` times each."""
        event = events[0]
        if self.observed.wait(lambda: self._most(word, events), within_s=within_s):
            times = self._most(word, events)
            did = f"it wrote `{word}`" + f" {times} times" * (times > 1)
            self._add(should, did, _verdict(most is None or times <= most), event)
        elif not self.observed.is_alive:
            self._add(should, f"it {self.observed.ending}", Verdict.FAILED, event)
        elif self.observed.log.is_written:
            self._add(should, f"it wrote no `{word}` into its log", Verdict.FAILED, event)
        else:
            self._add(should, _NO_LOG, Verdict.NOT_OBSERVED, event)

    def _most(self, word: str, events: Sequence[Event]) -> int:
        """Return how often the log has this word about the event that has it most often."""
        return max(self.observed.log.count(word, each.id) for each in events)

    def _missing_approval(self, event: Event) -> str:
        if not self.observed.is_alive:
            return f"it {self.observed.ending}"
        drained = (
            "it drained and did not approve" if self.observed.log.count(DRAIN, event.id) else ""
        )
        return drained or f"it asked {self.observed.polls()} times and did not approve"

    def _silence(self) -> str:
        if not self.observed.is_alive:
            return f"it {self.observed.ending}"
        return "it runs and does not ask any more"

    def _add(self, should: str, did: str, verdict: Verdict, event: Event | None = None) -> None:
        evidence = self.observed.evidence("" if event is None else event.id)
        self.points.append(Point(should=should, did=did, verdict=verdict, evidence=evidence))


def _verdict(is_good: object) -> Verdict:
    return Verdict.PASSED if is_good else Verdict.FAILED


def _short(event: Event) -> str:
    """Return the start of the event's id, which is enough to find it in the handler's log."""
    return event.id[:8]
