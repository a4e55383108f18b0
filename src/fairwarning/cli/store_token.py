"""Creates a token directly in the store. Import it only if needed: it loads the server."""

import asyncio
import json

from fairwarning.boot import BadStoreUrl, make_token_in
from fairwarning.common.command_errors import Problem
from fairwarning.common.durations import parse_duration_ms
from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api.auth import ROLES
from fairwarning.operator_api.parse_request import read_body
from fairwarning.operator_api.problems import Problem as Refusal
from fairwarning.operator_api.schemas import TokenBody


def make_in_store(store_url: str, body: dict[str, str]) -> dict[str, str]:
    try:
        asked = read_body(TokenBody, json.dumps(body).encode(), "application/json", optional=False)
        for_ms = None if asked.expires is None else parse_duration_ms(asked.expires)
        making = make_token_in(store_url, asked.name, ROLES[asked.role], for_ms=for_ms)
        token, secret = asyncio.run(making)
    except Refusal as refusal:
        raise Problem(refusal.detail, status=refusal.status, code=refusal.code) from None
    except (BadStoreUrl, StoreDown) as problem:
        raise Problem(str(problem)) from None
    return {"id": token.id, "name": token.name, "role": token.role, "secret": secret}
