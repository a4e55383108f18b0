"""What to ask next, and what an answer means. Pure: sockets, time and chance are elsewhere."""

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
"""Newest first: the first that the service knows is used."""
INSTANCE_VERSION = "2021-02-01"
WAIT_S = 15
"""How long a service that can hold an answer is asked to. A connection that died without a word
shows only when the answer stays away, and that must not cost an eviction its 30 seconds."""
HELD_GRACE_S = 5.0
FIRST_TIMEOUT_S = 150.0
"""The first call of a scope switches its events on, which may take two minutes."""
TIMEOUT_S = 10.0
POLL_S = 1.0
ASK_AGAIN_S = 0.3
"""Between two questions at the least: Azure refuses more than five a second, and there are more
versions than that."""
BACKOFF_S_MAX = 5.0
"""An eviction gives 30 seconds of notice, so nobody may look away for longer than this."""
RETRY_AFTER_S_MAX = 10.0
HASTY_MAX = 10
"""After so many, the service is taken to ignore the question: nobody changes so much."""
UNCHANGED_MAX = 30
"""After so many, the service must show what it has: one that began anew may have come to the same
tag with other events."""
RENEGOTIATES_AFTER = 5
"""So many failures in a row, and the newest version is tried again."""
TRIES_EVERY_MAX = 256
"""So many answers in an older version at most, and newer ones are tried again."""
_EVENTS = "/metadata/scheduledevents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    timeout_s: float = TIMEOUT_S
    version: int | None = None
    """Which of VERSIONS a poll asks in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a poll."""

    document: Document | None = None
    is_unchanged: bool = False
    asks_again: bool = False
    """Nothing is wrong, but the question must be put differently, now."""
    trouble: str = ""
    is_empty: bool = False
    """The trouble is an answer of no bytes at all, as some hosts give when there are no events."""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Where a client stands with its service."""

    version: int = 0
    """Which of VERSIONS is in use."""
    tag: str = ""
    can_wait: bool = True
    """Until shown otherwise, a service that gives tags is taken to hold answers too."""
    hasty: int = 0
    """So many answers in a row came at once although they were asked to be held."""
    unchanged: int = 0
    """So many answers in a row said that the tag is still right."""
    has_answered: bool = False
    is_settled: bool = False
    """A document was read in this version, so another refusal is trouble and no older service:
    older versions do not show evictions."""
    failures: int = 0
    older: int = 0
    """So many answers came in an older version than the newest."""
    tries: int | None = None
    """A version before the one in use, for the next poll: perhaps it was refused only because the
    service was not up yet. What is refused then is no trouble, and the one in use stays."""

    @property
    def api_version(self) -> str:
        return VERSIONS[self.version]

    def poll(self, *, waits: bool) -> Request:
        """`waits`: the service may hold its answer until something changes."""
        version = self.version if self.tries is None else self.tries
        # A tag that was got in another version would hide the answer of this one.
        tag = self.tag if waits and self.tries is None else ""
        holds = self.can_wait and bool(tag)
        base_s = TIMEOUT_S if self.has_answered else FIRST_TIMEOUT_S
        return _poll(version, tag, holds, WAIT_S + HELD_GRACE_S if holds else base_s)

    def take(
        self, response: Response, *, held: bool, took_s: float, asked: int | None = None
    ) -> tuple["Flow", Outcome]:
        """`held`: whether the request asked the service to hold its answer; `asked`: its version,
        unless it is the one in use."""
        version = self.version if asked is None else asked
        return self._judge(response, version, is_held=held, took_s=took_s)

    def _judge(
        self, response: Response, asked: int, *, is_held: bool, took_s: float
    ) -> tuple["Flow", Outcome]:
        is_hasty = is_held and took_s < POLL_S
        if response.status == 200:
            return self._read(response, asked, is_hasty=is_hasty)
        if response.status == 304:
            flow = self._unchanged(holds=self.can_wait and not is_hasty)
            return flow._in_turn() if flow.version else flow, Outcome(is_unchanged=True)
        if response.status in (400, 404) and is_held:
            # Perhaps it was the question to hold that was not understood.
            flow = replace(self, has_answered=True, failures=0, can_wait=False)
            return flow, Outcome(asks_again=True)
        if response.status in (400, 404) and self.is_settled and asked < self.version:
            following = asked + 1 if asked + 1 < self.version else None
            return replace(self, tries=following), Outcome(asks_again=True)
        if response.status in (400, 404) and not self.is_settled and not self._is_oldest:
            version = max(self.version, asked + 1)
            older = replace(self, has_answered=True, version=version, tag="")
            return older, Outcome(asks_again=True)
        return self.failed(f"the service answered {response.status}", _retry_after(response))

    def _unchanged(self, *, holds: bool) -> "Flow":
        is_enough = self.unchanged + 1 >= UNCHANGED_MAX
        return replace(self, has_answered=True, failures=0, hasty=0, can_wait=holds,
                       unchanged=0 if is_enough else self.unchanged + 1,
                       tag="" if is_enough else self.tag)  # fmt: skip

    @property
    def _is_oldest(self) -> bool:
        return self.version + 1 == len(VERSIONS)

    def _read(self, response: Response, asked: int, *, is_hasty: bool) -> tuple["Flow", Outcome]:
        try:
            document = read_document(response.body, version=VERSIONS[asked])
        except BadDocument as problem:
            flow, outcome = self.failed(str(problem))
            return flow, replace(outcome, is_empty=not response.body.strip())
        version = min(asked, self.version) if self.is_settled else asked
        etag = response.headers.get("etag", "")
        # Another question may have found a newer version meanwhile, where this tag means nothing.
        tag = etag if version == asked else ""
        hasty = self.hasty + 1 if is_hasty else 0
        holds = self.can_wait and not (is_hasty and (etag == self.tag or hasty == HASTY_MAX))
        flow = self
        if (tag, hasty, holds, version) != (self.tag, self.hasty, self.can_wait, self.version) or (
            self.failures or self.unchanged or self.tries is not None or not self.is_settled
        ):
            flow = replace(self, tag=tag, hasty=hasty, can_wait=holds, has_answered=True,
                           is_settled=True, failures=0, unchanged=0, version=version,
                           tries=None)  # fmt: skip
        return flow._in_turn() if version else flow, Outcome(document=document)

    def _in_turn(self) -> "Flow":
        """Newer versions are tried after the first answer in an older one, the second, the fourth
        and so on: soon where the service had only not come up yet, and seldom where it is old."""
        older = self.older + 1
        is_turn = older.bit_count() == 1 or older % TRIES_EVERY_MAX == 0
        return replace(self, older=older, tries=0 if is_turn else None)

    def failed(self, trouble: str, retry_after_s: float | None = None) -> tuple["Flow", Outcome]:
        flow = replace(self, failures=self.failures + 1, tag="", tries=None)
        if flow.failures % RENEGOTIATES_AFTER == 0 or (self._is_oldest and not self.is_settled):
            # Another service may be there now, or the one that is there was not itself before.
            flow = replace(flow, version=0, is_settled=False, can_wait=True, hasty=0, older=0)
        return flow, Outcome(trouble=trouble, retry_after_s=retry_after_s)

    def afresh(self) -> "Flow":
        """For a watch that begins: the service must show what it has."""
        return replace(self, tag="")

    def besides(self, asked: "Flow") -> "Flow":
        """With what a single question learned; who watches has not seen its document."""
        return replace(self, version=asked.version, is_settled=asked.is_settled,
                       has_answered=asked.has_answered, older=asked.older, tries=asked.tries,
                       tag=self.tag if asked.version == self.version else "")  # fmt: skip

    def pause_s(self, outcome: Outcome, chance: float, *, held: bool) -> float:
        """How long to wait before the next poll. `chance` is drawn evenly from 0 up to 1."""
        if outcome.asks_again:
            return ASK_AGAIN_S
        if held and self.can_wait and not outcome.trouble:
            return ASK_AGAIN_S if self.hasty else 0.0
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
    body = {"StartRequests": [{"EventId": id} for id in ids]}
    return Request(
        method="POST",
        target=f"{_EVENTS}?api-version={version}",
        headers={"Metadata": "true", "Content-Type": "application/json"},
        body=json.dumps(body, separators=(",", ":")).encode(),
    )


def who_am_i() -> Request:
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
