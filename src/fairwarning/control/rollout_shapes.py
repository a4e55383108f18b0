"""Rollouts as the API takes and gives them."""

from typing import Annotated, Literal

from msgspec import Meta

from fairwarning.control.shapes import DurationText, In, Name, Out, Text
from fairwarning.core.spans import END

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TimeOfDay = Annotated[str, Meta(pattern=rf"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00){END}")]
RolloutType = Literal["Freeze", "Reboot", "Redeploy"]


class WindowBody(In, rename={"from_": "from"}):
    from_: TimeOfDay
    to: TimeOfDay
    days: list[Day] = []


class RolloutBody(In):
    type: RolloutType
    scopes: Annotated[list[Name], Meta(max_length=1_000)] = []
    name: Annotated[str, Meta(max_length=100)] = ""
    description: Text | None = None
    notice: DurationText | None = None
    duration: DurationText | None = None
    scopes_at_once: Annotated[int, Meta(ge=1, le=10_000)] = 1
    pause: DurationText = "0s"
    stop_on_failure: bool = True
    windows: Annotated[list[WindowBody], Meta(max_length=50)] = []
    time_zone: Annotated[str, Meta(max_length=64)] = "UTC"
    blackouts: Annotated[
        list[Annotated[str, Meta(pattern=rf"^{_DATE}(/{_DATE})?{END}", max_length=21)]],
        Meta(max_length=100),
    ] = []


class StepShown(Out):
    scope: str
    update_domain: int
    instances: list[str]
    phase: str
    event: str | None
    announce_at: str | None
    not_before: str | None
    ends: str | None


class RolloutPlan(Out):
    steps: list[StepShown]
    ends: str | None
    warnings: list[str]


class WindowShown(Out, rename={"from_": "from"}):
    days: list[str]
    from_: str
    to: str


class RolloutShown(Out):
    id: str
    name: str
    type: str
    scopes: list[str]
    description: str | None
    notice: str | None
    duration: str | None
    scopes_at_once: int
    pause: str
    stop_on_failure: bool
    windows: list[WindowShown]
    time_zone: str
    blackouts: list[str]
    phase: str
    created: str
    created_by: str
    ended: str | None
    outcome: str
    steps: list[StepShown]


class RolloutsShown(Out):
    rollouts: list[RolloutShown]
    next: str | None
