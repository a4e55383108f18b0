"""Tokens, for admins."""

import msgspec

from fairwarning.control import shapes
from fairwarning.control.access import ROLES, Role, Token
from fairwarning.control.context import Control
from fairwarning.control.holding import held
from fairwarning.control.operation import Call, Operation
from fairwarning.control.problems import Problem
from fairwarning.control.reading import read_instant
from fairwarning.control.rendering import instant_of
from fairwarning.core.instants import Instant, format_rfc3339, later
from fairwarning.core.spans import parse_duration_ms


async def create(
    control: Control, call: Call[shapes.NoQuery, shapes.TokenBody]
) -> shapes.TokenMade:
    body = call.body
    expires = None if body.expires is None else _expiry(control, body.expires)
    # Else two of one name could be made at once, and the history could not tell them apart.
    async with held(control, "tokens", by=call.by) as locked:
        token, text = await locked.tokens.create(
            body.name, ROLES[body.role], expires, by=call.by, why=call.why
        )
    return shapes.TokenMade(**msgspec.structs.asdict(_shown(token)), secret=text)


async def listed(control: Control, call: Call[shapes.PageQuery, None]) -> shapes.Tokens:
    limit = call.query.limit
    found = await control.tokens.page(call.query.after or "", limit)
    return shapes.Tokens(
        tokens=[_shown(each) for each in found],
        next=found[-1].id if len(found) == limit else None,
    )


async def revoke(control: Control, call: Call[shapes.NoQuery, None]) -> shapes.Done:
    await control.tokens.revoke(call.path["id"], by=call.by, why=call.why)
    return shapes.Done()


def _expiry(control: Control, text: str) -> Instant:
    now = control.clock.now()
    for_ms = parse_duration_ms(text)
    expires = read_instant("expires", text) if for_ms is None else later(now, for_ms)
    if expires <= now:
        raise Problem(
            422, "instant-invalid", "expires is in the past; choose a later time",
            pointer="/expires",
        )  # fmt: skip
    return expires


def _shown(token: Token) -> shapes.TokenShown:
    return shapes.TokenShown(
        id=token.id,
        name=token.name,
        role=token.role,
        created=format_rfc3339(token.created_ms),
        created_by=token.created_by,
        expires=instant_of(token.expires_ms),
        last_used=instant_of(token.last_used_ms),
    )


OPERATIONS = (
    Operation(method="GET", path="/tokens", summary="Who has access", role=Role.ADMIN,
              handle=listed, query=shapes.PageQuery, answer=shapes.Tokens),
    Operation(method="POST", path="/tokens", summary="Make a token; its secret is shown once",
              role=Role.ADMIN, handle=create, body=shapes.TokenBody, answer=shapes.TokenMade,
              status=201, is_secret=True),
    Operation(method="DELETE", path="/tokens/{id}", summary="Revoke a token", role=Role.ADMIN,
              handle=revoke, answer=shapes.Done),
)  # fmt: skip
