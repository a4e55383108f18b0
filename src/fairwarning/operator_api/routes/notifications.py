"""The routes of notifications: targets, test messages, and dead letters."""

from typing import Annotated

from msgspec import Meta, field

from fairwarning.core.instants import format_rfc3339
from fairwarning.core.model import EventType, Source
from fairwarning.notifications.model import (
    Delivery,
    Filters,
    Format,
    Target,
    TargetDraft,
    TargetKind,
    Template,
    usual_kinds,
)
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.locks import held
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.schemas import Done, In, Name, NoQuery, Out, PageQuery


class FiltersBody(In):
    types: list[EventType] = []
    scopes: Annotated[list[Name], Meta(max_length=100)] = []
    sources: list[Source] = []
    kinds: Annotated[list[str], Meta(max_length=50)] | None = None


class TemplateBody(In):
    title: Annotated[str, Meta(max_length=500)] | None = None
    body: Annotated[str, Meta(max_length=5_000)] | None = None


class TargetBody(In):
    name: Annotated[str, Meta(min_length=1, max_length=64)]
    kind: TargetKind
    url: Annotated[str, Meta(min_length=1, max_length=2_000)]
    secret: Annotated[str, Meta(max_length=500)] = ""
    format: Format = Format.CLOUD_EVENTS
    filters: FiltersBody = field(default_factory=FiltersBody)
    template: TemplateBody = field(default_factory=TemplateBody)


class FiltersOut(Out):
    types: list[str]
    scopes: list[str]
    sources: list[str]
    kinds: list[str]


class TemplateOut(Out):
    title: str
    body: str


class TargetOut(Out):
    id: str
    name: str
    kind: TargetKind
    url: str
    """The address without the parts that may be secret."""
    format: Format
    filters: FiltersOut
    template: TemplateOut
    created: str
    created_by: str


class TargetWithSecret(TargetOut):
    secret: str
    """The signing key of a webhook. It is shown only in this answer."""


async def create_target(control: Control, call: Call[NoQuery, TargetBody]) -> TargetWithSecret:
    async with held(control, "notification targets", by=call.by) as locked:
        target = await locked.notifications.create(_draft(call.body), by=call.by, why=call.why)
    shown = _to_schema(target.without_secrets())
    return TargetWithSecret(
        **{name: getattr(shown, name) for name in TargetOut.__struct_fields__},
        secret=target.secret,
    )


class TargetsOut(Out):
    notifications: list[TargetOut]


async def list_targets(control: Control, _: Call[NoQuery, None]) -> TargetsOut:
    return TargetsOut(
        notifications=[_to_schema(each) for each in await control.notifications.list()]
    )


async def delete_target(control: Control, call: Call[NoQuery, None]) -> Done:
    await control.notifications.remove(call.path["id"], by=call.by, why=call.why)
    return Done()


class TestOut(Out):
    delivered: bool
    error: str


async def test_target(control: Control, call: Call[NoQuery, None]) -> TestOut:
    outcome = await control.notifications.test(call.path["id"])
    return TestOut(delivered=outcome.is_delivered, error=outcome.error)


class DeadLetter(Out):
    id: str
    target: str
    position: str
    title: str
    text: str
    attempts: int
    error: str


def _dead_letter(delivery: Delivery) -> DeadLetter:
    return DeadLetter(
        id=delivery.id,
        target=delivery.target_id,
        position=delivery.position,
        title=delivery.message.title,
        text=delivery.message.text,
        attempts=delivery.attempts,
        error=delivery.last_error,
    )


class DeadLetters(Out):
    dead_letters: list[DeadLetter]
    next: str | None


async def list_dead_letters(control: Control, call: Call[PageQuery, None]) -> DeadLetters:
    limit = call.query.limit
    found = await control.notifications.dead_letters(call.query.after or "", limit)
    return DeadLetters(
        dead_letters=[_dead_letter(each) for each in found],
        next=found[-1].id if len(found) == limit else None,
    )


async def retry_dead_letter(control: Control, call: Call[NoQuery, None]) -> Done:
    await control.notifications.retry(call.path["id"])
    return Done()


async def delete_dead_letter(control: Control, call: Call[NoQuery, None]) -> Done:
    await control.notifications.discard(call.path["id"])
    return Done()


def _draft(body: TargetBody) -> TargetDraft:
    filters, template = body.filters, body.template
    usual = Template()
    return TargetDraft(
        name=body.name,
        kind=body.kind,
        url=body.url,
        secret=body.secret,
        format=body.format,
        filters=Filters(
            types=tuple(filters.types),
            scopes=tuple(filters.scopes),
            sources=tuple(filters.sources),
            kinds=usual_kinds(body.format) if filters.kinds is None else tuple(filters.kinds),
        ),
        template=Template(
            title=usual.title if template.title is None else template.title,
            body=usual.body if template.body is None else template.body,
        ),
    )


def _to_schema(target: Target) -> TargetOut:
    filters = target.filters
    return TargetOut(
        id=target.id,
        name=target.name,
        kind=target.kind,
        url=target.url,
        format=target.format,
        filters=FiltersOut(
            types=list(filters.types),
            scopes=list(filters.scopes),
            sources=list(filters.sources),
            kinds=list(filters.kinds),
        ),
        template=TemplateOut(title=target.template.title, body=target.template.body),
        created=format_rfc3339(target.created_ms),
        created_by=str(target.created_by),
    )


ROUTES = (
    Route(method="GET", path="/notifications/dead-letters", summary="What could not be delivered",
          role=Role.ADMIN, handle=list_dead_letters, query=PageQuery, answer=DeadLetters),
    Route(method="POST", path="/notifications/dead-letters/{id}/retry", summary="Try one again",
          role=Role.ADMIN, handle=retry_dead_letter, answer=Done, is_in_steps=True),
    Route(method="DELETE", path="/notifications/dead-letters/{id}", summary="Give one up",
          role=Role.ADMIN, handle=delete_dead_letter, answer=Done),
    Route(method="GET", path="/notifications", summary="Who is told of what", role=Role.ADMIN,
          handle=list_targets, answer=TargetsOut),
    Route(method="POST", path="/notifications", summary="Tell somebody of what happens",
          role=Role.ADMIN, handle=create_target, body=TargetBody, answer=TargetWithSecret,
          status=201, is_in_steps=True, is_secret=True),
    Route(method="DELETE", path="/notifications/{id}", summary="Tell them no more", role=Role.ADMIN,
          handle=delete_target, answer=Done),
    Route(method="POST", path="/notifications/{id}/test", summary="Send one message now",
          role=Role.ADMIN, handle=test_target, answer=TestOut, is_outward=True),
)  # fmt: skip
