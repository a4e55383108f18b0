"""The routes of tokens, for admins; and /me, which tells callers who they are."""

import msgspec

from fairwarning.common.durations import parse_duration_ms
from fairwarning.core.instants import Instant, format_optional, format_rfc3339, later
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import ROLES, Role, Token
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.locks import held
from fairwarning.operator_api.parse_request import read_instant
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Call, Route


async def create_token(
    control: Control, call: Call[schemas.NoQuery, schemas.TokenBody]
) -> schemas.TokenWithSecret:
    body = call.body
    expires = None if body.expires is None else _expiry(control, body.expires)
    # The lock prevents two tokens with the same name, which the history could not tell apart.
    async with held(control, "tokens", by=call.by) as locked:
        token, text = await locked.tokens.create(
            body.name, ROLES[body.role], expires, by=call.by, why=call.why
        )
    return schemas.TokenWithSecret(**msgspec.structs.asdict(_to_schema(token)), secret=text)


async def list_tokens(control: Control, call: Call[schemas.PageQuery, None]) -> schemas.Tokens:
    limit = call.query.limit
    found = await control.tokens.page(call.query.after or "", limit)
    return schemas.Tokens(
        tokens=[_to_schema(each) for each in found],
        next=found[-1].id if len(found) == limit else None,
    )


async def delete_token(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.Done:
    await control.tokens.revoke(call.path["id"], by=call.by, why=call.why)
    return schemas.Done()


async def get_me(_: Control, call: Call[schemas.NoQuery, None]) -> schemas.Me:
    return schemas.Me(name=call.caller.name, role=call.caller.role.word)


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


def _to_schema(token: Token) -> schemas.TokenOut:
    return schemas.TokenOut(
        id=token.id,
        name=token.name,
        role=token.role,
        created=format_rfc3339(token.created_ms),
        created_by=token.created_by,
        expires=format_optional(token.expires_ms),
        last_used=format_optional(token.last_used_ms),
    )


ROUTES = (
    Route(method="GET", path="/me", summary="Who you are to this server", role=Role.VIEWER,
          handle=get_me, answer=schemas.Me),
    Route(method="GET", path="/tokens", summary="Who has access", role=Role.ADMIN,
          handle=list_tokens, query=schemas.PageQuery, answer=schemas.Tokens),
    Route(method="POST", path="/tokens", summary="Make a token; its secret is shown once",
          role=Role.ADMIN, handle=create_token, body=schemas.TokenBody,
          answer=schemas.TokenWithSecret, status=201, is_secret=True),
    Route(method="DELETE", path="/tokens/{id}", summary="Revoke a token", role=Role.ADMIN,
          handle=delete_token, answer=schemas.Done),
)  # fmt: skip
