"""Chooses the rule of an event, which is the first that fits, and explains why. It is pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from fairwarning.agent.config.model import Concerns, Config, Rule, Span
from fairwarning.client.model import Event, Instance
from fairwarning.common.durations import human_s

_SIDES = (Concerns.ME, Concerns.OTHERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    rule: Rule
    is_chosen: bool
    against: tuple[str, ...]
    """Why the rule does not fit, with a text for each reason. It is empty if the rule fits."""
    in_favour: tuple[str, ...]


def choose(config: Config, event: Event, me: Instance, now: datetime) -> Rule | None:
    """Return the rule of an event. If it is None, no rule fits, and nothing is done or approved."""
    return next((rule for rule in config.rules if not any(_against(rule, event, me, now))), None)


def explain(config: Config, event: Event, me: Instance, now: datetime) -> list[Verdict]:
    """Return a verdict on each rule, in the order of the file."""
    chosen = choose(config, event, me, now)
    return [_verdict(rule, event, me, now, is_chosen=rule is chosen) for rule in config.rules]


def never_taken(config: Config) -> list[tuple[Rule, Rule]]:
    """Return each rule that is never chosen, with an earlier rule that takes its events."""
    found: list[tuple[Rule, Rule]] = []
    taken: dict[Concerns, Rule] = {}
    for rule in config.rules:
        wanted = _SIDES if rule.concerns is Concerns.ANY else (rule.concerns,)
        if all(side in taken for side in wanted):
            found.append((rule, taken[wanted[-1]]))
        elif _asks_for_nothing(rule):
            taken = {**dict.fromkeys(wanted, rule), **taken}
    return found


def _asks_for_nothing(rule: Rule) -> bool:
    lists = (rule.types, rule.sources, rule.description, rule.resources, rule.tags)
    return not any(lists) and rule.duration is None and rule.time_left is None


def _verdict(rule: Rule, event: Event, me: Instance, now: datetime, *, is_chosen: bool) -> Verdict:
    found = list(_judge(rule, event, me, now))
    return Verdict(
        rule=rule,
        is_chosen=is_chosen,
        against=tuple(said for holds, said in found if not holds),
        in_favour=tuple(said for holds, said in found if holds),
    )


def _against(rule: Rule, event: Event, me: Instance, now: datetime) -> Iterator[str]:
    return (said for holds, said in _judge(rule, event, me, now) if not holds)


def _judge(rule: Rule, event: Event, me: Instance, now: datetime) -> Iterator[tuple[bool, str]]:
    """Yield for each condition of the rule whether the event meets it, and a text that says so."""
    yield _concerns(rule.concerns, event, me)
    if rule.types:
        holds = _is_in(event.type, rule.types)
        yield holds, f"its type is {event.type or 'unknown'}{_not(holds, rule.types)}"
    if rule.sources:
        holds = _is_in(event.source, rule.sources)
        yield holds, f"its source is {event.source or 'unknown'}{_not(holds, rule.sources)}"
    if rule.description:
        holds = re.search(rule.description, event.description) is not None
        fits = "fits" if holds else "does not fit"
        yield holds, f"its description {event.description!r} {fits} {rule.description!r}"
    if rule.duration is not None:
        yield _lasts(rule.duration, event)
    if rule.resources:
        yield _resources(rule.resources, event)
    for name, wanted in rule.tags.items():
        value = me.tags.get(name)
        holds = value is not None and fnmatchcase(value, wanted)
        has = "no such tag" if value is None else repr(value)
        yield holds, f"this VM's tag {name} is {has}{_not(holds, (wanted,))}"
    if rule.time_left is not None:
        left_s = event.time_left_s(now)
        holds = rule.time_left.holds(left_s)
        yield holds, f"{human_s(left_s)} are left{'' if holds else _bounds(rule.time_left)}"


def _concerns(wanted: Concerns, event: Event, me: Instance) -> tuple[bool, str]:
    is_mine = event.concerns(me.name)
    who = f"it concerns {me.name}" if is_mine else f"it does not concern {me.name}"
    match wanted:
        case Concerns.ME:
            return is_mine, who
        case Concerns.OTHERS:
            return not is_mine, who
        case Concerns.ANY:
            return True, who


def _lasts(wanted: Span, event: Event) -> tuple[bool, str]:
    if event.duration_s is None:
        return False, "nobody knows how long it lasts"
    holds = wanted.holds(event.duration_s)
    return holds, f"it lasts {human_s(event.duration_s)}{'' if holds else _bounds(wanted)}"


def _resources(patterns: tuple[str, ...], event: Event) -> tuple[bool, str]:
    found = [name for name in event.resources if any(fnmatchcase(name, each) for each in patterns)]
    if found:
        return True, f"{found[0]} fits {_listed(patterns)}"
    return False, f"none of {_listed(event.resources) or 'its resources'} fits {_listed(patterns)}"


def _is_in(value: str, wanted: tuple[str, ...]) -> bool:
    return value.lower() in (each.lower() for each in wanted)


def _not(holds: bool, wanted: Iterable[str]) -> str:
    return "" if holds else f", not {_listed(wanted)}"


def _bounds(span: Span) -> str:
    least = "" if span.min_s is None else f"at least {human_s(span.min_s)}"
    most = "" if span.max_s is None else f"at most {human_s(span.max_s)}"
    return f", not {' and '.join(each for each in (least, most) if each)}"


def _listed(words: Iterable[str]) -> str:
    return " or ".join(words)
