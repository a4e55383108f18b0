"""The language of the stories: one command a paragraph, `----`, and what came of it."""

from dataclasses import dataclass, field

from fairwarning.core.commands import (
    Activate,
    Approve,
    Cancel,
    ChangePolicy,
    Command,
    Operate,
    Postpone,
    ReportDone,
    ReportFailure,
    ReportPower,
    Schedule,
    Tick,
)
from fairwarning.core.decide import decide
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    NodeId,
    OperationKind,
    Policy,
    Power,
    Scope,
    instance_actor,
)
from fairwarning.core.refusals import Refused
from fairwarning.core.transitions import Started, Transition
from tests.core.builders import T0, event_id, web, workers

_UNITS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS}


@dataclass
class Player:
    scope: Scope
    now: Instant = T0
    ids: dict[str, EventId] = field(default_factory=dict)

    def event(self, name: str) -> EventId:
        return self.ids.setdefault(name, event_id(len(self.ids) + 1))

    def answer(self, line: str) -> str:
        verb, *words = line.split()
        if verb == "wait":
            self.now = later(self.now, _milliseconds(words[0]))
            command: Command = Tick()
        else:
            command = self._command(verb, words)
        try:
            change = decide(self.scope, command, self.now, node=NodeId("n"))
        except Refused as refused:
            return f"refused {refused.code}"
        self.scope = change.scope
        lines = [self._tell(each) for each in change.transitions]
        return "\n".join([*lines, f"incarnation {self.scope.incarnation}"])

    def _command(self, verb: str, words: list[str]) -> Command:
        match verb, words:
            case "schedule", [event, type, *targets]:
                names = tuple(map(InstanceName, targets))
                return Schedule(event_id=self.event(event), type=EventType(type), targets=names)
            case "happen", [event, type, target]:
                return Schedule(
                    event_id=self.event(event),
                    type=EventType(type),
                    targets=(InstanceName(target),),
                    already_happened=True,
                )
            case (("restart" | "redeploy" | "delete" | "evict"), [event, target]):
                return Operate(
                    event_id=self.event(event),
                    kind=OperationKind(verb),
                    instance=InstanceName(target),
                )
            case "approve", [event, by]:
                return Approve(event_id=self.event(event), by=instance_actor(InstanceName(by)))
            case "cancel", [event]:
                return Cancel(event_id=self.event(event))
            case "postpone", [event, new, by]:
                when = later(self.now, _milliseconds(by))
                return Postpone(
                    event_id=self.event(event), new_event_id=self.event(new), not_before_ms=when
                )
            case "done", [event]:
                return ReportDone(event_id=self.event(event))
            case "fails", [event, attempt]:
                return ReportFailure(
                    event_id=self.event(event), attempt=int(attempt), reason="no power"
                )
            case "power", [name, power]:
                return ReportPower(instance=InstanceName(name), power=Power(power))
            case "policy", flags:
                return ChangePolicy(policy=Policy(approve_user_reboot="reboot" in flags))
            case "poll", []:
                return Activate()
            case _:
                raise AssertionError(f"the story says {verb} {words}")

    def _tell(self, transition: Transition) -> str:
        name = type(transition).__name__
        found = getattr(transition, "event_id", None)
        event = next((key for key, id in self.ids.items() if id == found), "")
        cause = f" ({transition.cause})" if isinstance(transition, Started) else ""
        subject = event or getattr(transition, "name", "")
        return f"{name} {subject}".strip() + cause


def _milliseconds(text: str) -> int:
    number = text.rstrip("mshd")
    return int(number) * _UNITS[text[len(number) :]]


def play(text: str) -> str:
    """The story with its answers as they are now."""
    header, *paragraphs = [each.strip("\n") for each in text.strip().split("\n\n")]
    first, *_ = paragraphs[0].split("\n")
    _, kind, *flags = first.split()
    activated = "idle" not in flags
    player = Player(web(activated=activated) if kind == "web" else workers(activated=activated))
    told = [header, first]
    for paragraph in paragraphs[1:]:
        line = paragraph.split("\n")[0]
        told.append(line if line.startswith("#") else f"{line}\n----\n{player.answer(line)}")
    return "\n\n".join(told) + "\n"
