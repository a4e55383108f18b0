"""Which rule an event takes, and why."""

from datetime import timedelta

import pytest

from fairwarning.agent.config.model import Concerns, Rule, Span
from fairwarning.agent.rules import choose, explain, never_taken
from fairwarning.client.model import Event
from tests.agent.values import ME, NOW, config, event


@pytest.mark.parametrize(
    ("rule", "shown", "fits"),
    [
        (Rule(name="r"), event(), True),
        (Rule(name="r"), event(resources=("web-1",)), False),
        (Rule(name="r", concerns=Concerns.OTHERS), event(), False),
        (Rule(name="r", concerns=Concerns.OTHERS), event(resources=("web-1",)), True),
        (Rule(name="r", concerns=Concerns.ANY), event(resources=("web-1",)), True),
        (Rule(name="r", types=("reboot",)), event(), True),
        (Rule(name="r", types=("Freeze", "Preempt")), event(), False),
        (Rule(name="r", sources=("Platform",)), event(), True),
        (Rule(name="r", sources=("User",)), event(), False),
        (Rule(name="r", description="host"), event(description="new host"), True),
        (Rule(name="r", description="^host"), event(description="new host"), False),
        (Rule(name="r", duration=Span(max_s=10)), event(duration_s=10), True),
        (Rule(name="r", duration=Span(max_s=10)), event(duration_s=11), False),
        (Rule(name="r", duration=Span(max_s=10)), event(), False),
        (Rule(name="r", resources=("web-?",)), event(), True),
        (Rule(name="r", resources=("db-*",)), event(), False),
        (Rule(name="r", tags={"role": "fr*"}), event(), True),
        (Rule(name="r", tags={"role": "back"}), event(), False),
        (Rule(name="r", tags={"zone": "*"}), event(), False),
        (Rule(name="r", time_left=Span(min_s=900)), event(), True),
        (Rule(name="r", time_left=Span(max_s=60)), event(), False),
    ],
)
def test_what_a_rule_asks_for(rule: Rule, shown: Event, fits: bool) -> None:
    found = choose(config(rule), shown, ME, NOW)
    assert found == (rule if fits else None)
    (verdict,) = explain(config(rule), shown, ME, NOW)
    assert (verdict.is_chosen, not verdict.against) == (fits, fits)


def test_the_first_that_fits_is_taken_and_each_is_explained() -> None:
    rules = (Rule(name="a", types=("Freeze",)), Rule(name="b"), Rule(name="c"))
    verdicts = explain(config(*rules), event(), ME, NOW)
    assert [each.is_chosen for each in verdicts] == [False, True, False]
    assert verdicts[0].against == ("its type is Reboot, not Freeze",)
    assert verdicts[2].against == ()


def test_time_left_is_what_is_left_now() -> None:
    short = Rule(name="short", time_left=Span(max_s=60))
    assert choose(config(short), event(), ME, NOW + timedelta(seconds=840)) == short


@pytest.mark.parametrize(
    ("first", "late", "is_never_taken"),
    [
        ((Rule(name="a"),), Rule(name="b"), True),
        ((Rule(name="a"),), Rule(name="b", types=("Reboot",)), True),
        ((Rule(name="a", types=("Reboot",)),), Rule(name="b"), False),
        ((Rule(name="a", time_left=Span(min_s=0)),), Rule(name="b"), False),
        ((Rule(name="a", tags={"role": "*"}),), Rule(name="b"), False),
        ((Rule(name="a"),), Rule(name="b", concerns=Concerns.OTHERS), False),
        ((Rule(name="a"),), Rule(name="b", concerns=Concerns.ANY), False),
        ((Rule(name="a", concerns=Concerns.ANY),), Rule(name="b"), True),
        ((Rule(name="a", concerns=Concerns.ANY),), Rule(name="b", concerns=Concerns.OTHERS), True),
        (
            (Rule(name="a"), Rule(name="o", concerns=Concerns.OTHERS)),
            Rule(name="b", concerns=Concerns.ANY),
            True,
        ),
    ],
)
def test_a_rule_after_one_that_takes_everything_is_never_taken(
    first: tuple[Rule, ...], late: Rule, is_never_taken: bool
) -> None:
    found = never_taken(config(*first, late))
    assert found == ([(late, first[-1])] if is_never_taken else [])
    for resources in (("web-0",), ("web-1",)):
        if is_never_taken:
            chosen = choose(config(*first, late), event(resources=resources), ME, NOW)
            assert chosen is not late
