"""A view is one scope as its instances see it, with the instances that look."""

import logging
from collections.abc import Callable

from fairwarning.core.api_versions import ApiVersion
from fairwarning.core.document import document_tag, render, visible_events
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, InstanceName, Scope, ScopeId

EARLIER_MAX = 20
"""A store does not step back behind so many activations of one scope, each of a day or more."""

_log = logging.getLogger(__name__)


class View:
    """The documents of one scope, ready in memory."""

    __slots__ = ("_documents", "_shown", "_tag", "activated_ms", "earlier", "era", "forms",
                 "incarnation",
                 "is_asked", "is_test", "listeners", "revision", "scope_id", "unseen")  # fmt: skip

    def __init__(self, scope_id: ScopeId, *, is_test: bool) -> None:
        self.scope_id = scope_id
        self.is_test = is_test
        self.revision = -1
        self.era = -1
        """Since which step back of the store this has been read; see `Views`."""
        self.activated_ms: Instant | None = None
        self.earlier: tuple[Instant, ...] = ()
        """Activations that this has shown before, the last few; most scopes have none."""
        self.incarnation = 0
        self.is_asked = False
        """Whether an instance has asked since this was last noted in the store."""
        self.listeners: dict[Callable[[], None], None] | None = None
        """Called once, at the next change, in this order; made only while somebody waits."""
        self.forms: dict[int, tuple[bytes, bytes]] = {}
        """Where the endpoint keeps what it made of the documents; emptied at each change."""
        self.unseen: frozenset[EventId] = frozenset()
        """Events in the document that no instance has been shown."""
        self._documents: dict[str, bytes] = {}
        self._shown: Scope | None = None
        """The scope, while there is something to show; an idle fleet keeps none."""
        self._tag: str | None = None

    def put(self, scope: Scope, *, is_same_past: bool = True) -> None:
        """Show this scope from now on, and wake the held polls if the document is another.

        In one past of the store the same incarnation is the same document. In two it need not be.
        """
        same = (scope.activated_ms, scope.incarnation) == (self.activated_ms, self.incarnation)
        self.revision = scope.revision
        if same and is_same_past:
            return
        shown = visible_events(scope)
        if self.activated_ms is not None and self.activated_ms != scope.activated_ms:
            self.earlier = (*self.earlier[1 - EARLIER_MAX :], self.activated_ms)
        self.activated_ms, self.incarnation = scope.activated_ms, scope.incarnation
        self._documents, self.forms, self._tag = {}, {}, None
        self._shown = scope if shown else None
        self.unseen = frozenset(each.id for each in shown if each.sight is None)
        self.wake()

    def is_of(self, scope: Scope) -> bool:
        """Whether this shows the scope at exactly this revision."""
        if scope.revision != self.revision or scope.activated_ms != self.activated_ms:
            return False
        if scope.activated_ms is None:
            return True  # There is no document.
        return (
            document_tag(scope.activated_ms, scope.incarnation, visible_events(scope)) == self.tag
        )

    def is_contradicted_by(self, newer: Scope) -> bool:
        """Whether a scope of a higher revision shows another document under a number of this one.

        In one past of the store a number never goes down within an activation.
        """
        if newer.activated_ms is None or newer.activated_ms != self.activated_ms:
            return False
        if newer.incarnation != self.incarnation:
            return newer.incarnation < self.incarnation
        tag = document_tag(newer.activated_ms, newer.incarnation, visible_events(newer))
        return tag != self.tag

    @property
    def tag(self) -> str:
        """The tag of the document, made when it is first asked for."""
        if self._tag is None:
            shown = () if self._shown is None else visible_events(self._shown)
            self._tag = document_tag(self.activated_ms, self.incarnation, shown)
        return self._tag

    def take_unseen(self, version: ApiVersion) -> tuple[EventId, ...]:
        """The events to report as seen now that a document of this version is shown.

        What the version does not show stays unseen. Each event is given out once.
        """
        shown = () if self._shown is None else visible_events(self._shown)
        taken = tuple(e.id for e in shown if e.id in self.unseen and e.type in version.types)
        self.unseen -= frozenset(taken)
        return taken

    def wake(self) -> None:
        waiting, self.listeners = self.listeners, None
        for listener in waiting or ():
            try:
                listener()
            except Exception:
                _log.exception("a waiting client of %s could not be told", self.scope_id)

    def document(self, version: ApiVersion) -> bytes:
        """The body of the document, for an activated scope."""
        found = self._documents.get(version.name)
        if found is None:
            if self._shown is None:
                found = b'{"DocumentIncarnation":%d,"Events":[]}' % self.incarnation
            else:
                found = render(self._shown, version)
            self._documents[version.name] = found
        return found

    def shows(self, event_id: EventId) -> bool:
        return self._shown is not None and event_id in self._shown.events

    def listen(self, listener: Callable[[], None]) -> None:
        if self.listeners is None:
            self.listeners = {}
        self.listeners[listener] = None

    def forget(self, listener: Callable[[], None]) -> None:
        if self.listeners is not None:
            self.listeners.pop(listener, None)


class Member:
    """An instance and the view of its scope. One object for as long as the instance lives."""

    __slots__ = ("agent", "allowance", "is_live", "last_s", "name", "per_minute", "polls",
                 "sampled", "second", "view")  # fmt: skip

    def __init__(self, name: InstanceName, view: View) -> None:
        self.name = name
        self.view = view
        self.is_live = True
        self.second = 0
        self.allowance = 0
        """Requests left in `second`, for the endpoint's rate limit."""
        self.polls = 0
        """Since this node started; all that a poll has time to count."""
        self.agent = ""
        self.sampled = 0
        """`polls` at the last sample."""
        self.per_minute = 0.0
        self.last_s = 0.0
        """When a sample last found that it had polled, since 1970; 0: never."""
