"""The routes of rollouts: plan, create, list, get, pause, resume, cancel."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from fairwarning.common.durations import format_iso_duration
from fairwarning.common.loop_slices import map_in_slices
from fairwarning.core.instants import format_optional, format_rfc3339
from fairwarning.core.model import EventType
from fairwarning.core.rollouts.model import (
    Rollout,
    RolloutId,
    RolloutSpec,
    RolloutStep,
    is_rollout_id,
)
from fairwarning.core.rollouts.parts import WHOLE_STEPS_MAX
from fairwarning.core.rollouts.windows import make_window, parse_blackout
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import read_duration_ms
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.resolve_names import find_scopes
from fairwarning.operator_api.route import Call, Route
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


class StepOut(Out):
    scope: str
    update_domain: int
    instances: list[str]
    phase: str
    event: str | None
    announce_at: str | None
    not_before: str | None
    ends: str | None


class RolloutPlan(Out):
    steps: list[StepOut]
    """The first steps, at most 1,000."""
    ends: str | None
    warnings: list[str]
    total: int = 0
    """How many steps there are."""
    instances: int = 0
    """How many instances they have."""


async def plan_rollout(control: Control, call: Call[NoQuery, RolloutBody]) -> RolloutPlan:
    found = await control.rollouts.preview(_spec(control, call.body))
    return RolloutPlan(
        steps=await map_in_slices(_step, found.steps),
        ends=format_optional(found.ends_ms),
        warnings=list(found.warnings),
        total=found.total,
        instances=found.instances,
    )


class WindowOut(Out, rename={"from_": "from"}):
    days: list[str]
    from_: str
    to: str


class RolloutOut(Out):
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
    windows: list[WindowOut]
    time_zone: str
    blackouts: list[str]
    phase: str
    created: str
    created_by: str
    why: str
    """The reason that its creator gave."""
    ended: str | None
    outcome: str
    steps: list[StepOut]
    """All steps, or, if there are more than 1,000, those that are under way and the next ones."""
    counts: dict[str, int] = {}
    """How many of all steps are in each phase."""


async def create_rollout(control: Control, call: Call[NoQuery, RolloutBody]) -> RolloutOut:
    if call.was_done and call.seed is not None:
        return await _to_schema(await control.rollouts.made_for(call.seed))
    spec = _spec(control, call.body)
    return await _to_schema(
        await control.rollouts.create(spec, by=call.by, why=call.why, seed=call.seed)
    )


class RolloutsOut(Out):
    rollouts: list[RolloutOut]
    next: str | None


async def list_rollouts(control: Control, call: Call[PageQuery, None]) -> RolloutsOut:
    after, limit = call.query.after, call.query.limit
    if after is not None and not is_rollout_id(after):
        raise Problem(422, "cursor-invalid", "`after` is no cursor; take `next` of a page")
    found = await control.rollouts.page(after or "", limit)
    return RolloutsOut(
        rollouts=[await _to_schema(each) for each in found],
        next=found[-1].id if len(found) == limit else None,
    )


async def get_rollout(control: Control, call: Call[NoQuery, None]) -> RolloutOut:
    return await _to_schema(await control.rollouts.get(_id(call)))


class StepsOut(Out):
    steps: list[StepOut]
    next: str | None


async def list_steps(control: Control, call: Call[PageQuery, None]) -> StepsOut:
    found, next = await control.rollouts.steps(_id(call), call.query.after or "", call.query.limit)
    return StepsOut(steps=await map_in_slices(_step, found), next=next)


Change = Callable[..., Awaitable[Rollout]]


def _change_route(verb: str, choose: Callable[[Control], Change]) -> Route:
    async def change(control: Control, call: Call[NoQuery, None]) -> RolloutOut:
        if call.was_done:
            return await get_rollout(control, call)
        return await _to_schema(await choose(control)(_id(call), by=call.by, why=call.why))

    return Route(
        method="POST",
        path=f"/rollouts/{{id}}/{verb}",
        summary=f"{verb.capitalize()} a rollout",
        role=Role.OPERATOR,
        handle=change,
        answer=RolloutOut,
    )


def _id(call: Call[Any, Any]) -> RolloutId:
    return RolloutId(call.path["id"])


def _spec(control: Control, body: RolloutBody) -> RolloutSpec:
    duration_ms = None if body.duration is None else read_duration_ms("duration", body.duration)
    return RolloutSpec(
        type=EventType(body.type),
        scope_ids=tuple(
            dict.fromkeys(id for name in body.scopes for id in find_scopes(control.views, name))
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


def _step(step: RolloutStep) -> StepOut:
    return StepOut(
        scope=step.scope_id,
        update_domain=step.update_domain,
        instances=list(step.instances),
        phase=step.phase,
        event=step.event_id,
        announce_at=format_optional(step.announced_ms),
        not_before=format_optional(step.not_before_ms),
        ends=format_optional(step.ended_ms),
    )


async def _to_schema(rollout: Rollout) -> RolloutOut:
    spec = rollout.spec
    duration_s = spec.duration_s
    return RolloutOut(
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
            WindowOut(days=list(each.day_names), from_=each.opens, to=each.closes)
            for each in spec.windows
        ],
        time_zone=spec.time_zone,
        blackouts=[str(each) for each in spec.blackouts],
        phase=rollout.phase,
        created=format_rfc3339(rollout.created_ms),
        created_by=str(rollout.created_by),
        why=rollout.why,
        ended=format_optional(rollout.ended_ms),
        outcome=rollout.outcome,
        steps=await map_in_slices(_step, _shown_steps(rollout)),
        counts={str(phase): count for phase, count in rollout.counts.items()},
    )


def _shown_steps(rollout: Rollout) -> Sequence[RolloutStep]:
    return rollout.steps if rollout.rest is None else rollout.steps[:WHOLE_STEPS_MAX]


ROUTES = (
    Route(method="POST", path="/rollouts/plan",
          summary="Which instances when; nothing is announced", role=Role.VIEWER,
          handle=plan_rollout, body=RolloutBody, answer=RolloutPlan, is_preview=True),
    Route(method="POST", path="/rollouts", summary="Take maintenance through a fleet",
          role=Role.OPERATOR, handle=create_rollout, body=RolloutBody, answer=RolloutOut,
          status=201),
    Route(method="GET", path="/rollouts", summary="Rollouts", role=Role.VIEWER,
          handle=list_rollouts, query=PageQuery, answer=RolloutsOut),
    Route(method="GET", path="/rollouts/{id}", summary="A rollout and how it stands",
          role=Role.VIEWER, handle=get_rollout, answer=RolloutOut),
    Route(method="GET", path="/rollouts/{id}/steps", summary="The steps of a rollout in order",
          role=Role.VIEWER, handle=list_steps, query=PageQuery, answer=StepsOut),
    _change_route("pause", lambda control: control.rollouts.pause),
    _change_route("resume", lambda control: control.rollouts.resume),
    _change_route("cancel", lambda control: control.rollouts.cancel),
)  # fmt: skip
