"""Tokens, for admins."""

import msgspec

from fairwarning.common.durations import parse_duration_ms
from fairwarning.core.instants import Instant, format_rfc3339, later
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import ROLES, Role, Token
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.locks import held
from fairwarning.operator_api.parse_request import read_instant
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Call, Operation
from fairwarning.operator_api.to_schema import instant_of


async def create(
    control: Control, call: Call[schemas.NoQuery, schemas.TokenBody]
) -> schemas.TokenMade:
    body = call.body
    expires = None if body.expires is None else _expiry(control, body.expires)
    # Else two of one name could be made at once, and the history could not tell them apart.
    async with held(control, "tokens", by=call.by) as locked:
        token, text = await locked.tokens.create(
            body.name, ROLES[body.role], expires, by=call.by, why=call.why
        )
    return schemas.TokenMade(**msgspec.structs.asdict(_shown(token)), secret=text)


async def listed(control: Control, call: Call[schemas.PageQuery, None]) -> schemas.Tokens:
    limit = call.query.limit
    found = await control.tokens.page(call.query.after or "", limit)
    return schemas.Tokens(
        tokens=[_shown(each) for each in found],
        next=found[-1].id if len(found) == limit else None,
    )


async def revoke(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.Done:
    await control.tokens.revoke(call.path["id"], by=call.by, why=call.why)
    return schemas.Done()


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


def _shown(token: Token) -> schemas.TokenShown:
    return schemas.TokenShown(
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
              handle=listed, query=schemas.PageQuery, answer=schemas.Tokens),
    Operation(method="POST", path="/tokens", summary="Make a token; its secret is shown once",
              role=Role.ADMIN, handle=create, body=schemas.TokenBody, answer=schemas.TokenMade,
              status=201, is_secret=True),
    Operation(method="DELETE", path="/tokens/{id}", summary="Revoke a token", role=Role.ADMIN,
              handle=revoke, answer=schemas.Done),
)  # fmt: skip
