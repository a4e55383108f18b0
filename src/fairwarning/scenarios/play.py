"""Plays a scenario on a server through the operator API, and reports what happens.

At the end of a run, also of a failed one, its faults are cleared. Its events stay on the server;
`Player.pending` lists those that are not over.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from fairwarning.common.durations import format_iso_duration
from fairwarning.scenarios.clock_control import ClockControl
from fairwarning.scenarios.model import (
    Approve,
    Cancel,
    ClearFaults,
    Expect,
    Json,
    Operate,
    OperatorApi,
    Postpone,
    RequestRefused,
    Scenario,
    Schedule,
    SetFault,
    StartRollout,
    Step,
    instant,
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
"""How many times, at most, an expectation with a time limit is checked. Each check is a few
requests.
"""


class ReportLine(Struct, frozen=True, kw_only=True):
    """One line of the report of a run."""

    kind: str
    """The kind is `step`, `report`, `met`, `unmet` or `note`."""
    at: datetime
    """The time by the server's clock."""
    since: timedelta
    """The time since the scenario began."""
    text: str
    data: Json = {}


OnLine = Callable[[ReportLine], None]


class StepFailed(Exception):
    """The server refused the request of a step."""

    def __init__(self, step: Step, reason: str) -> None:
        super().__init__(reason)
        self.line = step.line


class Player:
    """Plays the steps of a scenario in order, each at its time."""

    def __init__(
        self, operator: OperatorApi, clock: ClockControl, on_line: OnLine, scopes: Mapping[str, str]
    ) -> None:
        """`scopes` maps each instance to its scope. `on_line` gets each line of the report."""
        self._operator = operator
        self._clock = clock
        self._on_line = on_line
        self._scopes = scopes
        self._began = clock.now()
        self._history = HistoryReader(operator, {*scopes.values()})
        self._events: dict[str, str] = {}
        """The ids of events, by the names that the steps give them."""
        self._rollouts: dict[str, str] = {}
        self._made: list[str] = []
        self._faults: list[str] = []
        self._faults_before: set[str] | None = None
        """The faults that existed before the current request to set one. They tell which fault is
        new if the response is lost. It is None between requests."""
        self.unmet = 0
        """How many expectations were not met."""

    def play(self, scenario: Scenario) -> None:
        """Play all steps.

        Raises `StepFailed` if the server refuses a step, and `RequestRefused` if it refuses
        another request.
        """
        self._warn_if_unwatched(scenario)
        try:
            for step in scenario.steps:
                self._clock.until(self._began + timedelta(milliseconds=step.at_ms), self._report)
                self._do(step)
                self._clock.settle()
                self._report()
        finally:
            self._clear_faults()

    def pending(self) -> list[Json]:
        """Return the events of this run that are not over."""
        found = [self._operator.get("events", id) for id in self._made]
        return [each for each in found if each["phase"] not in _ENDED]

    def _warn_if_unwatched(self, scenario: Scenario) -> None:
        owned = [
            each.action.instance for each in scenario.steps if isinstance(each.action, Operate)
        ]
        for scope in sorted({self._scopes[each] for each in owned}):
            if not self._operator.get("scopes", scope)["activated"]:
                self._say(
                    "note",
                    f"nobody in {scope} has asked for its events yet, so what owners ask of it "
                    "happens at once and unannounced; let a handler poll first",
                )

    def _do(self, step: Step) -> None:
        if step.say or not isinstance(step.action, Expect):
            action = "" if isinstance(step.action, Expect) else in_words(step.action)
            self._say("step", step.say or action, action=action)
        try:
            self._execute(step)
        except RequestRefused as declined:
            raise StepFailed(step, f"{in_words(step.action)}: {declined}") from None

    def _execute(self, step: Step) -> None:
        match step.action:
            case Schedule():
                self._remember(
                    step.name, self._operator.post("events", body=schedule_body(step.action))
                )
            case Operate(kind=kind, instance=name):
                self._remember(step.name, self._operator.post("instances", name, kind))
            case Approve(event=name):
                self._decide(name, "approve")
            case Cancel(event=name, reason=reason):
                self._decide(name, "cancel", {"reason": reason})
            case Postpone(event=name, notice_ms=notice_ms):
                body = {"notice": format_iso_duration(notice_ms)}
                self._decide(name, "postpone", body, renames=step.name or name)
            case SetFault():
                self._set_fault(step.action)
            case ClearFaults():
                self._clear_faults()
            case StartRollout(of=names):
                scopes = sorted({self._scopes[each] for each in names})
                body = rollout_body(step.action, scopes)
                self._rollouts[step.name] = self._operator.post("rollouts", body=body)["id"]
            case Expect():
                self._expect(step.action)
            case None:
                pass

    def _remember(self, name: str, event: Json) -> None:
        self._made.append(event["id"])
        if name:
            self._events[name] = event["id"]

    def _decide(self, name: str, verb: str, body: Json | None = None, renames: str = "") -> None:
        """Approve, cancel or postpone the event. If it has started or ended, only note that."""
        event = self._operator.get("events", self._events[name])
        if event["phase"] != "scheduled":
            self._say("note", f"it is too late to {verb} {name}: it is {event['phase']}")
            return
        made = self._operator.post("events", event["id"], verb, body=body)
        if renames:
            self._remember(renames, made)

    def _expect(self, action: Expect) -> None:
        ends = self._clock.now() + timedelta(milliseconds=action.within_ms)
        look = max(_SECOND, timedelta(milliseconds=action.within_ms // LOOKS_MAX))
        while not (is_met := self._is_met(action)) and (now := self._clock.now()) < ends:
            self._clock.until(min(now + look, ends), self._report)
        if is_met:
            self._say("met", expectation(action))
            return
        self.unmet += 1
        self._say("unmet", f"expected {expectation(action)}, but it is {self._state(action)}")

    def _is_met(self, action: Expect) -> bool:
        found = self._found(action)
        is_there = not action.phases or found["phase"] in action.phases
        if action.approved is None:
            return is_there
        by = [each["by"] for each in found["approvals"]]
        if isinstance(action.approved, str):
            return is_there and f"instance:{action.approved.rpartition('/')[2]}" in by
        return is_there and bool(by) == action.approved

    def _state(self, action: Expect) -> str:
        found = self._found(action)
        by = [each["by"] for each in found.get("approvals", [])]
        approved = f", approved by {', '.join(by)}" if by else ", approved by nobody"
        return f"{found['phase']}{approved if action.approved is not None else ''}"

    def _found(self, action: Expect) -> Json:
        if action.is_rollout:
            return self._operator.get("rollouts", self._rollouts[action.name])
        return self._operator.get("events", self._events[action.name])

    def _set_fault(self, action: SetFault) -> None:
        self._faults_before = self._current_faults()
        self._faults.append(self._operator.post("faults", body=fault_body(action))["id"])
        self._faults_before = None

    def _current_faults(self) -> set[str]:
        return {each["id"] for each in self._operator.get("faults")["faults"]}

    def _clear_faults(self) -> None:
        if self._faults_before is not None:
            self._faults += self._current_faults() - self._faults_before
            self._faults_before = None
        while self._faults:
            try:
                self._operator.delete("faults", self._faults[-1])
            except RequestRefused as declined:
                if declined.status != 404:  # 404: the fault has ended by itself
                    raise
            self._faults.pop()

    def _report(self) -> None:
        for entry in self._history.read():
            at = instant(entry["at"])
            self._on_line(
                ReportLine(
                    kind="report", at=at, since=at - self._began, text=entry["text"], data=entry
                )
            )

    def _say(self, kind: str, text: str, **data: str) -> None:
        at = self._clock.now()
        self._on_line(ReportLine(kind=kind, at=at, since=at - self._began, text=text, data=data))


PAGE = 100  # One page has all new entries of most reads.
PAGES_MAX = 50  # If there are more new entries, the oldest are left out.
_INTERNAL = frozenset({"HandedOver", "LeaseRenewed"})
"""Kinds of entries about the work of nodes, which reports leave out."""


class HistoryReader:
    """Reads the entries that are new in the server's history since the last call."""

    def __init__(self, operator: OperatorApi, scopes: Collection[str]) -> None:
        """Start to read entries of these scopes, and entries without a scope, such as faults."""
        self._operator = operator
        self._scopes = {*scopes, ""}
        found = operator.get("history", limit=1)["entries"]
        self._last: str | None = found[0]["position"] if found else None

    def read(self) -> list[Json]:
        """Return the new entries, each once, the oldest first."""
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
        return [each for each in reversed(found) if self._is_relevant(each)]

    def _until_known(self, entries: list[Json]) -> list[Json]:
        positions = [each["position"] for each in entries]
        if self._last not in positions:
            return entries
        return entries[: positions.index(self._last)]

    def _is_relevant(self, entry: Json) -> bool:
        return entry["scope"] in self._scopes and entry["kind"] not in _INTERNAL
