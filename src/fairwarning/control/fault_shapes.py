"""Faults as the API takes and gives them."""

from typing import Annotated, Literal

from msgspec import Meta, field

from fairwarning.control.shapes import DurationText, In, InstantText, Name, Out
from fairwarning.core.faults import COUNT_MAX, FaultKind, Part


class FaultBody(In):
    kind: FaultKind
    instances: Annotated[list[Name], Meta(max_length=100)] = []
    on: Part = Part.POLL
    count: Annotated[int, Meta(ge=1, le=COUNT_MAX)] | None = None
    probability: Annotated[float, Meta(gt=0, le=1)] = 1.0
    status: Literal[410, 429, 500, 503] = 503
    delay: DurationText = "5s"
    from_: InstantText | None = field(default=None, name="from")
    until: InstantText | None = None
    for_: DurationText | None = field(default=None, name="for")


class FaultShown(Out):
    id: str
    kind: FaultKind
    instances: list[str]
    on: Part
    count: int | None
    probability: float
    status: int | None
    """Of the kind `status` only."""
    delay: str | None
    """Of the slow kinds only."""
    from_: str | None = field(name="from")
    until: str | None
    hits: int


class FaultList(Out):
    faults: list[FaultShown]


class Cleared(Out):
    cleared: int
