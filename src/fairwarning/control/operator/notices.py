"""Targets of notices, and what could not be delivered."""

from fairwarning.control import notice_shapes as shapes
from fairwarning.control.access import Role
from fairwarning.control.context import Control
from fairwarning.control.holding import held
from fairwarning.control.operation import Call, Operation
from fairwarning.control.shapes import Done, NoQuery, PageQuery
from fairwarning.core.instants import format_rfc3339
from fairwarning.notifications.model import (
    Delivery,
    Filters,
    Target,
    TargetDraft,
    Template,
    usual_kinds,
)


async def create(control: Control, call: Call[NoQuery, shapes.NoticeBody]) -> shapes.NoticeMade:
    async with held(control, "notice targets", by=call.by) as locked:
        target = await locked.notices.create(_draft(call.body), by=call.by, why=call.why)
    shown = _shown(target.without_secrets())
    return shapes.NoticeMade(
        **{name: getattr(shown, name) for name in shapes.NoticeShown.__struct_fields__},
        secret=target.secret,
    )


async def listed(control: Control, _: Call[NoQuery, None]) -> shapes.NoticesShown:
    return shapes.NoticesShown(notices=[_shown(each) for each in await control.notices.list()])


async def remove(control: Control, call: Call[NoQuery, None]) -> Done:
    await control.notices.remove(call.path["id"], by=call.by, why=call.why)
    return Done()


async def trial(control: Control, call: Call[NoQuery, None]) -> shapes.TrialShown:
    outcome = await control.notices.test(call.path["id"])
    return shapes.TrialShown(delivered=outcome.is_delivered, error=outcome.error)


async def dead_letters(control: Control, call: Call[PageQuery, None]) -> shapes.DeadLetters:
    limit = call.query.limit
    found = await control.notices.dead_letters(call.query.after or "", limit)
    return shapes.DeadLetters(
        dead_letters=[_letter(each) for each in found],
        next=found[-1].id if len(found) == limit else None,
    )


async def retry(control: Control, call: Call[NoQuery, None]) -> Done:
    await control.notices.retry(call.path["id"])
    return Done()


async def discard(control: Control, call: Call[NoQuery, None]) -> Done:
    await control.notices.discard(call.path["id"])
    return Done()


def _draft(body: shapes.NoticeBody) -> TargetDraft:
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


def _shown(target: Target) -> shapes.NoticeShown:
    filters = target.filters
    return shapes.NoticeShown(
        id=target.id,
        name=target.name,
        kind=target.kind,
        url=target.url,
        format=target.format,
        filters=shapes.FiltersShown(
            types=list(filters.types),
            scopes=list(filters.scopes),
            sources=list(filters.sources),
            kinds=list(filters.kinds),
        ),
        template=shapes.TemplateShown(title=target.template.title, body=target.template.body),
        created=format_rfc3339(target.created_ms),
        created_by=str(target.created_by),
    )


def _letter(delivery: Delivery) -> shapes.DeadLetter:
    return shapes.DeadLetter(
        id=delivery.id,
        notice=delivery.target_id,
        position=delivery.position,
        title=delivery.message.title,
        text=delivery.message.text,
        attempts=delivery.attempts,
        error=delivery.last_error,
    )


OPERATIONS = (
    Operation(method="GET", path="/notices/dead-letters", summary="What could not be delivered",
              role=Role.ADMIN, handle=dead_letters, query=PageQuery, answer=shapes.DeadLetters),
    Operation(method="POST", path="/notices/dead-letters/{id}/retry", summary="Try one again",
              role=Role.ADMIN, handle=retry, answer=Done, is_in_steps=True),
    Operation(method="DELETE", path="/notices/dead-letters/{id}", summary="Give one up",
              role=Role.ADMIN, handle=discard, answer=Done),
    Operation(method="GET", path="/notices", summary="Who is told of what", role=Role.ADMIN,
              handle=listed, answer=shapes.NoticesShown),
    Operation(method="POST", path="/notices", summary="Tell somebody of what happens",
              role=Role.ADMIN, handle=create, body=shapes.NoticeBody, answer=shapes.NoticeMade,
              status=201, is_in_steps=True, is_secret=True),
    Operation(method="DELETE", path="/notices/{id}", summary="Tell them no more", role=Role.ADMIN,
              handle=remove, answer=Done),
    Operation(method="POST", path="/notices/{id}/test", summary="Send one message now",
              role=Role.ADMIN, handle=trial, answer=shapes.TrialShown, is_outward=True),
)  # fmt: skip
