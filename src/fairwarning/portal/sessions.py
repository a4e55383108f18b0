"""Sessions of the portal: they identify the caller, and check that a form is from our pages.

On loopback no login is needed, as for the operator API. Elsewhere a person logs in with a token.
The token is kept in a cookie that scripts cannot read and that requests of other sites do not send.
"""

import hashlib
import hmac
import secrets

from starlette.requests import Request
from starlette.responses import Response

from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.browser_protection import refuse_foreign, refuse_foreign_page
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import local_caller
from fairwarning.operator_api.offload import caller_key
from fairwarning.operator_api.problems import Problem

COOKIE = "fairwarning"
AGE_S = 12 * 3600  # A working day.


class Sessions:
    def __init__(self, control: Control, *, needs_token: bool) -> None:
        self._control = control
        self.needs_token = needs_token
        self._local_key = secrets.token_bytes(32)

    async def caller(self, request: Request) -> Caller | None:
        """Return the caller, or None without a valid login.

        Raises Problem for a foreign host or page, if no token is needed.
        """
        caller = await self._caller(request)
        if caller is not None:
            caller_key.set(caller.key)
        return caller

    async def _caller(self, request: Request) -> Caller | None:
        if not self.needs_token:
            refuse_foreign(request.headers, request.url.scheme)
            return local_caller(request)
        token = request.cookies.get(COOKIE, "")
        return await self._control.tokens.caller(token) if token else None

    def form_key(self, request: Request) -> str:
        """Return the key that all forms of this session contain, derived from its secret."""
        key = request.cookies.get(COOKIE, "").encode() if self.needs_token else self._local_key
        return hmac.new(key, b"form", hashlib.sha256).hexdigest()

    def refuse_forged(self, request: Request, given: str) -> None:
        self.refuse_foreign_page(request)
        if not hmac.compare_digest(given.encode(), self.form_key(request).encode()):
            raise Problem(
                403,
                "form-out-of-date",
                "this page was open for too long; load it again, then retry",
            )

    def refuse_foreign_page(self, request: Request) -> None:
        """Raises Problem if a page of another site sent the request."""
        refuse_foreign_page(request.headers, request.url.scheme, self._control.public_url)

    def log_in(self, request: Request, response: Response, token: str) -> None:
        is_secure = "https" in (
            request.url.scheme, self._control.public_url.partition(":")[0]
        )  # fmt: skip
        response.set_cookie(
            COOKIE, token, max_age=AGE_S, httponly=True, samesite="strict", secure=is_secure
        )

    def log_out(self, response: Response) -> None:
        response.delete_cookie(COOKIE)
