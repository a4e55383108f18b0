"""Plays a scenario on a server, through the operator API, and tells what happens.

Whatever ends the play, the faults that it has set are cleared. Events that it has made go on:
they are the server's, and the player says which.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from fairwarning.common.durations import format_iso_duration
from fairwarning.scenarios.api import Declined, Operator, instant
from fairwarning.scenarios.clock_control import Pace
from fairwarning.scenarios.model import (
    Approve,
    Cancel,
    ClearFaults,
    Expect,
    Json,
    Operate,
    Postpone,
    Scenario,
    Schedule,
    SetFault,
    StartRollout,
    Step,
)
from fairwarning.scenarios.step_actions import (
    expectation,
    fault_body,
    in_words,
    rollout_body,
    schedule_body,
)

_ENDED = ("completed", "cancelled", "failed")
_SECOND = timedelta(seconds=1)
LOOKS_MAX = 200
"""So often an expectation with time to be met is looked at, at most."""


class Told(Struct, frozen=True, kw_only=True):
    """One line of the tale."""

    kind: str
    """`step`, `report`, `met`, `unmet` or `note`."""
    at: datetime
    """By the server's clock."""
    since: timedelta
    """The story began."""
    text: str
    data: Json = {}


Tell = Callable[[Told], None]


class StepFailed(Exception):
    """The server did not do what a step asked for."""

    def __init__(self, step: Step, reason: str) -> None:
        super().__init__(reason)
        self.line = step.line


class Player:
    def __init__(
        self, operator: Operator, pace: Pace, tell: Tell, scopes: Mapping[str, str]
    ) -> None:
        """`scopes` says to which scope each instance of the cast belongs."""
        self._operator = operator
        self._pace = pace
        self._tell = tell
        self._scopes = scopes
        self._began = pace.now()
        self._news = News(operator, {*scopes.values()})
        self._events: dict[str, str] = {}
        """Ids, by the names that the story gives."""
        self._rollouts: dict[str, str] = {}
        self._made: list[str] = []
        self._faults: list[str] = []
        self._before: set[str] | None = None
        """The faults that were there, while one is being set: its id may never reach us."""
        self.unmet = 0
        """How many expectations failed."""

    def play(self, scenario: Scenario) -> None:
        """Raises StepFailed or Declined."""
        self._warn_if_unwatched(scenario)
        try:
            for step in scenario.steps:
                self._pace.until(self._began + timedelta(milliseconds=step.at_ms), self._report)
                self._do(step)
                self._pace.settle()
                self._report()
        finally:
            self._clear_faults()

    def pending(self) -> list[Json]:
        """The events of this story that are not over."""
        found = [self._operator.get("events", id) for id in self._made]
        return [each for each in found if each["phase"] not in _ENDED]

    def _warn_if_unwatched(self, scenario: Scenario) -> None:
        owned = [each.deed.instance for each in scenario.steps if isinstance(each.deed, Operate)]
        for scope in sorted({self._scopes[each] for each in owned}):
            if not self._operator.get("scopes", scope)["activated"]:
                self._say(
                    "note",
                    f"nobody in {scope} has asked for its events yet, so what owners ask of it "
                    "happens at once and unannounced; let a handler poll first",
                )

    def _do(self, step: Step) -> None:
        if step.say or not isinstance(step.deed, Expect):
            deed = "" if isinstance(step.deed, Expect) else in_words(step.deed)
            self._say("step", step.say or deed, deed=deed)
        try:
            self._carry_out(step)
        except Declined as declined:
            raise StepFailed(step, f"{in_words(step.deed)}: {declined}") from None

    def _carry_out(self, step: Step) -> None:
        match step.deed:
            case Schedule():
                self._note(step.name, self._operator.post("events", body=schedule_body(step.deed)))
            case Operate(kind=kind, instance=name):
                self._note(step.name, self._operator.post("instances", name, kind))
            case Approve(event=name):
                self._decide(name, "approve")
            case Cancel(event=name, reason=reason):
                self._decide(name, "cancel", {"reason": reason})
            case Postpone(event=name, notice_ms=notice_ms):
                body = {"notice": format_iso_duration(notice_ms)}
                self._decide(name, "postpone", body, renames=step.name or name)
            case SetFault():
                self._set_fault(step.deed)
            case ClearFaults():
                self._clear_faults()
            case StartRollout(of=names):
                scopes = sorted({self._scopes[each] for each in names})
                body = rollout_body(step.deed, scopes)
                self._rollouts[step.name] = self._operator.post("rollouts", body=body)["id"]
            case Expect():
                self._expect(step.deed)
            case None:
                pass

    def _note(self, name: str, event: Json) -> None:
        self._made.append(event["id"])
        if name:
            self._events[name] = event["id"]

    def _decide(self, name: str, verb: str, body: Json | None = None, renames: str = "") -> None:
        """A handler may have been faster: then the story goes on with what there is."""
        event = self._operator.get("events", self._events[name])
        if event["phase"] != "scheduled":
            self._say("note", f"it is too late to {verb} {name}: it is {event['phase']}")
            return
        made = self._operator.post("events", event["id"], verb, body=body)
        if renames:
            self._note(renames, made)

    def _expect(self, deed: Expect) -> None:
        ends = self._pace.now() + timedelta(milliseconds=deed.within_ms)
        look = max(_SECOND, timedelta(milliseconds=deed.within_ms // LOOKS_MAX))
        while not (is_met := self._is_met(deed)) and (now := self._pace.now()) < ends:
            self._pace.until(min(now + look, ends), self._report)
        if is_met:
            self._say("met", expectation(deed))
            return
        self.unmet += 1
        self._say("unmet", f"expected {expectation(deed)}, but it is {self._state(deed)}")

    def _is_met(self, deed: Expect) -> bool:
        found = self._found(deed)
        is_there = not deed.phases or found["phase"] in deed.phases
        if deed.approved is None:
            return is_there
        by = [each["by"] for each in found["approvals"]]
        if isinstance(deed.approved, str):
            return is_there and f"instance:{deed.approved.rpartition('/')[2]}" in by
        return is_there and bool(by) == deed.approved

    def _state(self, deed: Expect) -> str:
        found = self._found(deed)
        by = [each["by"] for each in found.get("approvals", [])]
        told = f", approved by {', '.join(by)}" if by else ", approved by nobody"
        return f"{found['phase']}{told if deed.approved is not None else ''}"

    def _found(self, deed: Expect) -> Json:
        if deed.is_rollout:
            return self._operator.get("rollouts", self._rollouts[deed.name])
        return self._operator.get("events", self._events[deed.name])

    def _set_fault(self, deed: SetFault) -> None:
        self._before = self._set_now()
        self._faults.append(self._operator.post("faults", body=fault_body(deed))["id"])
        self._before = None

    def _set_now(self) -> set[str]:
        return {each["id"] for each in self._operator.get("faults")["faults"]}

    def _clear_faults(self) -> None:
        if self._before is not None:
            self._faults += self._set_now() - self._before
            self._before = None
        while self._faults:
            try:
                self._operator.delete("faults", self._faults[-1])
            except Declined as declined:
                if declined.status != 404:  # it is over by itself
                    raise
            self._faults.pop()

    def _report(self) -> None:
        for entry in self._news.read():
            at = instant(entry["at"])
            self._tell(
                Told(kind="report", at=at, since=at - self._began, text=entry["text"], data=entry)
            )

    def _say(self, kind: str, text: str, **data: str) -> None:
        at = self._pace.now()
        self._tell(Told(kind=kind, at=at, since=at - self._began, text=text, data=data))


# What the server has written into its history since one last looked.
PAGE = 100
PAGES_MAX = 50
_INTERNAL = frozenset({"HandedOver", "LeaseRenewed"})
"""Housekeeping between nodes, which no story is about."""


class News:
    def __init__(self, operator: Operator, scopes: Collection[str]) -> None:
        """Of these scopes, and of what is outside all scopes, such as faults and rollouts."""
        self._operator = operator
        self._scopes = {*scopes, ""}
        found = operator.get("history", limit=1)["entries"]
        self._last: str | None = found[0]["position"] if found else None

    def read(self) -> list[Json]:
        """Each entry once, oldest first."""
        found: list[Json] = []
        after: str | None = None
        for _ in range(PAGES_MAX):
            page = self._operator.get("history", limit=PAGE, after=after)
            fresh = self._until_known(page["entries"])
            found += fresh
            after = page["next"]
            if after is None or len(fresh) < len(page["entries"]):
                break
        if found:
            self._last = found[0]["position"]
        return [each for each in reversed(found) if self._is_told(each)]

    def _until_known(self, entries: list[Json]) -> list[Json]:
        positions = [each["position"] for each in entries]
        if self._last not in positions:
            return entries
        return entries[: positions.index(self._last)]

    def _is_told(self, entry: Json) -> bool:
        return entry["scope"] in self._scopes and entry["kind"] not in _INTERNAL
