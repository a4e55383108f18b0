"""A fault strikes the requests that it was set for, and no others."""

from typing import Any

import pytest

from fairwarning.core.faults import Fault, FaultKind, Part
from fairwarning.core.instants import Instant, later
from fairwarning.core.model import InstanceName
from tests.core.builders import T0, names

WEB0 = InstanceName("web-0")


def strikes(
    *, now: Instant = T0, part: Part = Part.POLL, chance: float = 0.0, **settings: Any
) -> bool:
    chosen = {"kind": FaultKind.STATUS, **settings}
    return Fault(id="f", **chosen).strikes(WEB0, part, now, chance)


@pytest.mark.parametrize(("after_ms", "expected"), [(-1, False), (0, True), (9, True), (10, False)])
def test_it_strikes_from_its_begin_on_and_until_its_end(after_ms: int, expected: bool) -> None:
    now = later(T0, after_ms)
    assert strikes(now=now, from_ms=T0, until_ms=later(T0, 10)) is expected


@pytest.mark.parametrize(("hits", "expected"), [(0, True), (2, True), (3, False)])
def test_it_strikes_so_often_as_was_asked_for(hits: int, expected: bool) -> None:
    assert strikes(count=3, hits=hits) is expected
    assert strikes(count=None, hits=hits)


@pytest.mark.parametrize(
    ("instances", "expected"), [((), True), (("web-0", "web-1"), True), (("web-1",), False)]
)
def test_it_strikes_the_instances_that_it_names(instances: tuple[str, ...], expected: bool) -> None:
    assert strikes(instances=names(*instances)) is expected


@pytest.mark.parametrize(
    ("on", "part", "expected"),
    [
        (Part.POLL, Part.POLL, True),
        (Part.POLL, Part.APPROVE, False),
        (Part.APPROVE, Part.APPROVE, True),
        (Part.INSTANCE, Part.POLL, False),
        (Part.ANY, Part.INSTANCE, True),
    ],
)
def test_it_strikes_its_part_of_the_endpoint(on: Part, part: Part, expected: bool) -> None:
    assert strikes(on=on, part=part) is expected


def test_only_a_poll_has_a_document_to_break() -> None:
    assert strikes(kind=FaultKind.DUPLICATE, on=Part.ANY, part=Part.POLL)
    assert not strikes(kind=FaultKind.DUPLICATE, on=Part.ANY, part=Part.APPROVE)


def test_it_strikes_as_often_as_its_probability_says() -> None:
    assert strikes(probability=0.25, chance=0.2499)
    assert not strikes(probability=0.25, chance=0.25)
    assert not strikes(probability=0.0, chance=0.0)
