"""Rollouts: preview, start, look at, pause, resume, cancel."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from msgspec import Meta

from fairwarning.common.durations import format_iso_duration
from fairwarning.core.instants import format_rfc3339
from fairwarning.core.model import EventType
from fairwarning.core.rollouts.model import (
    Rollout,
    RolloutId,
    RolloutSpec,
    RolloutStep,
    is_rollout_id,
)
from fairwarning.core.rollouts.windows import make_window, parse_blackout
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import read_duration_ms
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.resolve_names import find_scope
from fairwarning.operator_api.route import Call, Operation
from fairwarning.operator_api.schemas import (
    END,
    DurationText,
    In,
    Name,
    NoQuery,
    Out,
    PageQuery,
    Text,
)
from fairwarning.operator_api.to_schema import instant_of

# Rollouts as the API takes and gives them.
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


async def plan(control: Control, call: Call[NoQuery, RolloutBody]) -> RolloutPlan:
    found = await control.rollouts.preview(_spec(control, call.body))
    return RolloutPlan(
        steps=[_step(each) for each in found.steps],
        ends=instant_of(found.ends_ms),
        warnings=list(found.warnings),
    )


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


async def create(control: Control, call: Call[NoQuery, RolloutBody]) -> RolloutShown:
    if call.was_done and call.seed is not None:
        return _shown(await control.rollouts.made_for(call.seed))
    spec = _spec(control, call.body)
    return _shown(await control.rollouts.create(spec, by=call.by, why=call.why, seed=call.seed))


class RolloutsShown(Out):
    rollouts: list[RolloutShown]
    next: str | None


async def listed(control: Control, call: Call[PageQuery, None]) -> RolloutsShown:
    after, limit = call.query.after, call.query.limit
    if after is not None and not is_rollout_id(after):
        raise Problem(422, "cursor-invalid", "`after` is no cursor; take `next` of a page")
    found = await control.rollouts.page(after or "", limit)
    return RolloutsShown(
        rollouts=[_shown(each) for each in found],
        next=found[-1].id if len(found) == limit else None,
    )


async def shown(control: Control, call: Call[NoQuery, None]) -> RolloutShown:
    return _shown(await control.rollouts.get(_id(call)))


Change = Callable[..., Awaitable[Rollout]]


def _changing(verb: str, choose: Callable[[Control], Change]) -> Operation:
    async def change(control: Control, call: Call[NoQuery, None]) -> RolloutShown:
        if call.was_done:
            return await shown(control, call)
        return _shown(await choose(control)(_id(call), by=call.by, why=call.why))

    return Operation(
        method="POST",
        path=f"/rollouts/{{id}}/{verb}",
        summary=f"{verb.capitalize()} a rollout",
        role=Role.OPERATOR,
        handle=change,
        answer=RolloutShown,
    )


def _id(call: Call[Any, Any]) -> RolloutId:
    return RolloutId(call.path["id"])


def _spec(control: Control, body: RolloutBody) -> RolloutSpec:
    duration_ms = None if body.duration is None else read_duration_ms("duration", body.duration)
    return RolloutSpec(
        type=EventType(body.type),
        scope_ids=tuple(
            dict.fromkeys(find_scope(control.views, name) for name in dict.fromkeys(body.scopes))
        ),
        name=body.name,
        description=body.description,
        notice_ms=None if body.notice is None else read_duration_ms("notice", body.notice),
        duration_s=None if duration_ms is None else duration_ms // 1000,
        scopes_at_once=body.scopes_at_once,
        pause_ms=read_duration_ms("pause", body.pause),
        stop_on_failure=body.stop_on_failure,
        windows=tuple(make_window(each.days, each.from_, each.to) for each in body.windows),
        time_zone=body.time_zone,
        blackouts=tuple(parse_blackout(each) for each in body.blackouts),
    )


def _step(step: RolloutStep) -> StepShown:
    return StepShown(
        scope=step.scope_id,
        update_domain=step.update_domain,
        instances=list(step.instances),
        phase=step.phase,
        event=step.event_id,
        announce_at=instant_of(step.announced_ms),
        not_before=instant_of(step.not_before_ms),
        ends=instant_of(step.ended_ms),
    )


def _shown(rollout: Rollout) -> RolloutShown:
    spec = rollout.spec
    duration_s = spec.duration_s
    return RolloutShown(
        id=rollout.id,
        name=spec.name,
        type=spec.type.value,
        scopes=list(spec.scope_ids),
        description=spec.description,
        notice=None if spec.notice_ms is None else format_iso_duration(spec.notice_ms),
        duration=None if duration_s is None else format_iso_duration(duration_s * 1000),
        scopes_at_once=spec.scopes_at_once,
        pause=format_iso_duration(spec.pause_ms),
        stop_on_failure=spec.stop_on_failure,
        windows=[
            WindowShown(days=list(each.day_names), from_=each.opens, to=each.closes)
            for each in spec.windows
        ],
        time_zone=spec.time_zone,
        blackouts=[str(each) for each in spec.blackouts],
        phase=rollout.phase,
        created=format_rfc3339(rollout.created_ms),
        created_by=str(rollout.created_by),
        ended=instant_of(rollout.ended_ms),
        outcome=rollout.outcome,
        steps=[_step(each) for each in rollout.steps],
    )


OPERATIONS = (
    Operation(method="POST", path="/rollouts/plan",
              summary="Which instances when; nothing is announced", role=Role.VIEWER, handle=plan,
              body=RolloutBody, answer=RolloutPlan, is_preview=True),
    Operation(method="POST", path="/rollouts", summary="Take maintenance through a fleet",
              role=Role.OPERATOR, handle=create, body=RolloutBody,
              answer=RolloutShown, status=201),
    Operation(method="GET", path="/rollouts", summary="Rollouts", role=Role.VIEWER, handle=listed,
              query=PageQuery, answer=RolloutsShown),
    Operation(method="GET", path="/rollouts/{id}", summary="A rollout and how it stands",
              role=Role.VIEWER, handle=shown, answer=RolloutShown),
    _changing("pause", lambda control: control.rollouts.pause),
    _changing("resume", lambda control: control.rollouts.resume),
    _changing("cancel", lambda control: control.rollouts.cancel),
)  # fmt: skip
