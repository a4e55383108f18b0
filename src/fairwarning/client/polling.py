"""Decides how a client polls: which request comes next, when, and what a response means.

This module is pure: sockets, time and random numbers are in `client.py`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from fairwarning.client.model import Document
from fairwarning.client.parse_document import BadDocument, read_document

VERSIONS = (
    "2020-07-01", "2019-08-01", "2019-04-01", "2019-01-01", "2017-11-01", "2017-08-01",
    "2017-03-01",
)  # fmt: skip
"""The api-versions, newest first. The first that the service knows is used."""
INSTANCE_VERSION = "2021-02-01"
WAIT_S = 15
"""How long the service may hold a poll. We notice a dead connection only when the response does not
come, and this must take much less than the 30 seconds of notice before an eviction.
"""
HELD_GRACE_S = 5.0
"""How long a held response may be late before the connection counts as dead."""
FIRST_TIMEOUT_S = 150.0
"""The time-out until the service has answered once. The first request of a scope activates it,
which may take two minutes.
"""
TIMEOUT_S = 10.0  # A service on the same host answers in milliseconds.
POLL_S = 1.0  # Azure advises one poll in a second.
ASK_AGAIN_S = 0.3
"""The pause before a request that must follow at once. Azure refuses more than five requests in a
second, and there are more api-versions than that to try.
"""
BACKOFF_S_MAX = 5.0
"""The longest pause after failures. It is short, because an eviction gives 30 seconds of notice."""
RETRY_AFTER_S_MAX = 10.0
"""The longest pause that a `Retry-After` of the service can cause."""
EARLY_MAX = 10
"""After so many early responses in a row, we assume that the service ignores `wait`, because no
document changes so often.
"""
UNCHANGED_MAX = 30
"""After so many 304 responses in a row, we ask for the whole document, because a service that began
anew may have reached the same tag with other events.
"""
RENEGOTIATES_AFTER = 5
"""After so many failures in a row, the newest api-version is tried again."""
TRIES_EVERY_MAX = 256
"""Newer api-versions are tried again after at most so many responses in an older one."""
_EVENTS = "/metadata/scheduledevents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request to the service."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    timeout_s: float = TIMEOUT_S
    version: int | None = None
    """The index of a poll's api-version in VERSIONS. It is None if the request is no poll."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An HTTP response of the service."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers, with names in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a response to a poll means."""

    document: Document | None = None
    is_unchanged: bool = False
    asks_again: bool = False
    """Whether another request must follow at once, because the service did not understand this."""
    trouble: str = ""
    is_empty: bool = False
    """Whether the response was empty. Some hosts send this when there are no events."""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PollState:
    """What a client has learned about its service."""

    version: int = 0
    """The index in VERSIONS of the api-version in use."""
    tag: str = ""
    can_wait: bool = True
    """Whether the service holds polls. We assume this until a response shows that it does not."""
    early: int = 0
    """How many documents in a row came at once although the service could hold the poll."""
    unchanged: int = 0
    """How many responses in a row were 304."""
    has_answered: bool = False
    is_settled: bool = False
    """Whether a document was read in this version. From then on, a refusal counts as a failure. We
    don't change to an older version, because old versions do not show evictions.
    """
    failures: int = 0
    older: int = 0
    """How many responses came in an older version than the newest."""
    tries: int | None = None
    """The index of a newer version to try in the next poll, or None. The service may have refused
    that version only because it was still starting. If it refuses again, `version` stays.
    """

    @property
    def api_version(self) -> str:
        return VERSIONS[self.version]

    def poll(self, *, waits: bool) -> Request:
        """Return the next poll. If `waits` is true, the service may hold it until a change."""
        version = self.version if self.tries is None else self.tries
        # With a tag from another version, the service could answer 304, without a document.
        tag = self.tag if waits and self.tries is None else ""
        holds = self.can_wait and bool(tag)
        base_s = TIMEOUT_S if self.has_answered else FIRST_TIMEOUT_S
        return _poll(version, tag, holds, WAIT_S + HELD_GRACE_S if holds else base_s)

    def take(
        self, response: Response, *, held: bool, took_s: float, asked: int | None = None
    ) -> tuple["PollState", Outcome]:
        """Return the state and the outcome after a response.

        `held` says whether the service was allowed to hold the request. `asked` is the index of the
        request's version; None stands for the version in use.
        """
        version = self.version if asked is None else asked
        return self._judge(response, version, is_held=held, took_s=took_s)

    def _judge(
        self, response: Response, asked: int, *, is_held: bool, took_s: float
    ) -> tuple["PollState", Outcome]:
        is_early = is_held and took_s < POLL_S
        if response.status == 200:
            return self._read(response, asked, is_early=is_early)
        if response.status == 304:
            state = self._unchanged(holds=self.can_wait and not is_early)
            return state._in_turn() if state.version else state, Outcome(is_unchanged=True)
        if response.status in (400, 404) and is_held:
            # Perhaps the service does not understand `wait`.
            state = replace(self, has_answered=True, failures=0, can_wait=False)
            return state, Outcome(asks_again=True)
        if response.status in (400, 404) and self.is_settled and asked < self.version:
            following = asked + 1 if asked + 1 < self.version else None
            return replace(self, tries=following), Outcome(asks_again=True)
        if response.status in (400, 404) and not self.is_settled and not self._is_oldest:
            version = max(self.version, asked + 1)
            older = replace(self, has_answered=True, version=version, tag="")
            return older, Outcome(asks_again=True)
        return self.failed(f"the service answered {response.status}", _retry_after(response))

    def _unchanged(self, *, holds: bool) -> "PollState":
        is_enough = self.unchanged + 1 >= UNCHANGED_MAX
        return replace(self, has_answered=True, failures=0, early=0, can_wait=holds,
                       unchanged=0 if is_enough else self.unchanged + 1,
                       tag="" if is_enough else self.tag)  # fmt: skip

    @property
    def _is_oldest(self) -> bool:
        return self.version + 1 == len(VERSIONS)

    def _read(
        self, response: Response, asked: int, *, is_early: bool
    ) -> tuple["PollState", Outcome]:
        try:
            document = read_document(response.body, version=VERSIONS[asked])
        except BadDocument as problem:
            state, outcome = self.failed(str(problem))
            return state, replace(outcome, is_empty=not response.body.strip())
        version = min(asked, self.version) if self.is_settled else asked
        etag = response.headers.get("etag", "")
        # Another request may have found a newer version meanwhile, where this tag means nothing.
        tag = etag if version == asked else ""
        early = self.early + 1 if is_early else 0
        holds = self.can_wait and not (is_early and (etag == self.tag or early == EARLY_MAX))
        state = self
        if (tag, early, holds, version) != (self.tag, self.early, self.can_wait, self.version) or (
            self.failures or self.unchanged or self.tries is not None or not self.is_settled
        ):
            state = replace(self, tag=tag, early=early, can_wait=holds, has_answered=True,
                           is_settled=True, failures=0, unchanged=0, version=version,
                           tries=None)  # fmt: skip
        return state._in_turn() if version else state, Outcome(document=document)

    def _in_turn(self) -> "PollState":
        """Count a response in an older version, and decide if the next poll tries a newer one.

        It does after 1, 2, 4, 8 and so on responses. So a service that was only starting is soon
        used in its newest version, and an old service is seldom asked for what it does not know.
        """
        older = self.older + 1
        is_turn = older.bit_count() == 1 or older % TRIES_EVERY_MAX == 0
        return replace(self, older=older, tries=0 if is_turn else None)

    def failed(
        self, trouble: str, retry_after_s: float | None = None
    ) -> tuple["PollState", Outcome]:
        """Return the state and the outcome after a poll without a usable response."""
        state = replace(self, failures=self.failures + 1, tag="", tries=None)
        if state.failures % RENEGOTIATES_AFTER == 0 or (self._is_oldest and not self.is_settled):
            # Another service may be there now, or this one had not started completely before.
            state = replace(state, version=0, is_settled=False, can_wait=True, early=0, older=0)
        return state, Outcome(trouble=trouble, retry_after_s=retry_after_s)

    def restarted(self) -> "PollState":
        """Return the state for a new watch. Its first poll asks for the whole document."""
        return replace(self, tag="")

    def with_single_request(self, asked: "PollState") -> "PollState":
        """Return this state with what `get` learned about the service (`asked`).

        The tag is not taken over, because `watch` has not seen the document of that tag yet.
        """
        return replace(self, version=asked.version, is_settled=asked.is_settled,
                       has_answered=asked.has_answered, older=asked.older, tries=asked.tries,
                       tag=self.tag if asked.version == self.version else "")  # fmt: skip

    def pause_s(self, outcome: Outcome, chance: float, *, held: bool) -> float:
        """Return the pause before the next poll.

        `chance` is a random number from 0 to 1 that spreads the retries of many clients. `held`
        says whether the service was allowed to hold the last poll.
        """
        if outcome.asks_again:
            return ASK_AGAIN_S
        if held and self.can_wait and not outcome.trouble:
            return ASK_AGAIN_S if self.early else 0.0
        if not outcome.trouble:
            return POLL_S
        if outcome.retry_after_s is not None:
            return max(ASK_AGAIN_S, outcome.retry_after_s + chance * 0.5)
        longest = min(BACKOFF_S_MAX, 0.5 * (1 << min(self.failures, 10)))
        return longest * (0.5 + chance / 2)


@lru_cache(maxsize=8)
def _poll(version: int, tag: str, holds: bool, timeout_s: float) -> Request:
    headers = {"Metadata": "true", "If-None-Match": tag} if tag else {"Metadata": "true"}
    query = f"?api-version={VERSIONS[version]}" + (f"&wait={WAIT_S}" if holds else "")
    return Request(
        method="GET",
        target=_EVENTS + query,
        headers=headers,
        timeout_s=timeout_s,
        version=version,
    )


def approval(ids: Sequence[str], version: str) -> Request:
    """Return the request that approves these events."""
    body = {"StartRequests": [{"EventId": id} for id in ids]}
    return Request(
        method="POST",
        target=f"{_EVENTS}?api-version={version}",
        headers={"Metadata": "true", "Content-Type": "application/json"},
        body=json.dumps(body, separators=(",", ":")).encode(),
    )


def instance_request() -> Request:
    """Return the request for the instance metadata of this VM."""
    return Request(
        method="GET",
        target=f"/metadata/instance?api-version={INSTANCE_VERSION}",
        headers={"Metadata": "true"},
    )


def _retry_after(response: Response) -> float | None:
    try:
        return min(RETRY_AFTER_S_MAX, max(0.0, float(response.headers.get("retry-after", ""))))
    except ValueError:
        return None
