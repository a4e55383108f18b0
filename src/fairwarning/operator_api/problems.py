"""Error answers as RFC 9457 problem details.

`type` and `code` are stable, `detail` is a sentence that says what to do. Only this module decides
which HTTP status a refusal of the rules gets.
"""

import msgspec

from fairwarning.core.refusals import Code, Refused

MEDIA_TYPE = "application/problem+json"
_BASE = "https://fairwarning.invalid/problems/"
_NOT_FOUND = frozenset(
    code for code in Code if code.value.startswith("unknown-") or code.value == "instance-deleted"
)
_CANNOT_BE = frozenset(
    code for code in Code if code.value.endswith("-invalid") or code.value.endswith("-too-long")
) | {Code.NO_TARGET, Code.NOT_IN_SCOPE, Code.SPANS_UPDATE_DOMAINS}


class Problem(Exception):
    """An error answer. `more` holds additional members of the body."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        **more: object,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.more = {name: value for name, value in more.items() if value is not None}

    def body(self) -> bytes:
        title = self.code.replace("-", " ").capitalize()
        return msgspec.json.encode(
            {
                "type": _BASE + self.code,
                "title": title,
                "status": self.status,
                "code": self.code,
                "detail": self.detail,
                **self.more,
            }
        )


def of_refusal(refused: Refused) -> Problem:
    code = refused.code
    status = 404 if code in _NOT_FOUND else 422 if code in _CANNOT_BE else 409
    return Problem(status, code.value, refused.message)


def of_outage() -> Problem:
    """Return the answer for an outage. The cause is only logged: it may name hosts and files."""
    return Problem(
        503,
        "store-down",
        "the store cannot answer just now; nothing that was promised is lost, try again",
        headers={"Retry-After": "1"},
    )


def of_outdated() -> Problem:
    """Return the answer of a node whose version is too old to write to its store."""
    return Problem(
        503,
        "node-outdated",
        "this node runs an older version of fairwarning than its store needs, so it changes "
        "nothing; ask another node, and upgrade this one",
        headers={"Retry-After": "5"},
    )


def of_stop() -> Problem:
    return Problem(
        503,
        "stopping",
        "the server is stopping; ask again when it is back, with the same Idempotency-Key if any",
        headers={"Retry-After": "5"},
    )


def of_bug() -> Problem:
    return Problem(
        500, "broken", "the server met a fault of its own; its log says which, please report it"
    )
