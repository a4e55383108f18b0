"""A view has the documents of one scope. A member is one instance with its view."""

import logging
from collections.abc import Callable

from fairwarning.core.api_versions import ApiVersion
from fairwarning.core.document import document_tag, render, visible_events
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, InstanceName, Scope, ScopeId

EARLIER_MAX = 20
"""How many earlier activations are remembered. No store is expected to step back further."""

_log = logging.getLogger(__name__)


class View:
    """The documents of one scope, kept in memory."""

    __slots__ = ("_documents", "_shown", "_tag", "activated_ms", "earlier", "era", "forms",
                 "incarnation",
                 "is_asked", "is_test", "listeners", "revision", "scope_id", "unseen")  # fmt: skip

    def __init__(self, scope_id: ScopeId, *, is_test: bool) -> None:
        self.scope_id = scope_id
        self.is_test = is_test
        self.revision = -1
        self.era = -1
        """The era in which the scope was read. Each step back of the store begins a new era."""
        self.activated_ms: Instant | None = None
        self.earlier: tuple[Instant, ...] = ()
        """The last few earlier activations that this view has shown. Most scopes have none."""
        self.incarnation = 0
        self.is_asked = False
        """Whether an instance has asked since the last note in the store."""
        self.listeners: dict[Callable[[], None], None] | None = None
        """The functions to call once, in order, at the next change. None if nobody waits."""
        self.forms: dict[int, tuple[bytes, bytes]] = {}
        """The ready responses of the endpoint, by `Request.form`. Each change empties this."""
        self.unseen: frozenset[EventId] = frozenset()
        """The events in the document that no instance has been shown yet."""
        self._documents: dict[str, bytes] = {}
        self._shown: Scope | None = None
        """The scope, or None if it has no events to show."""
        self._tag: str | None = None

    def put(self, scope: Scope, *, is_same_past: bool = True) -> None:
        """Show this scope from now on, and wake the waiting polls if the document has changed.

        The same incarnation is the same document only as long as the store has not stepped back.
        `is_same_past` says whether this is so.
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
        """Return whether this view shows the scope at exactly this revision."""
        if scope.revision != self.revision or scope.activated_ms != self.activated_ms:
            return False
        if scope.activated_ms is None:
            return True  # There is no document.
        return (
            document_tag(scope.activated_ms, scope.incarnation, visible_events(scope)) == self.tag
        )

    def is_contradicted_by(self, newer: Scope) -> bool:
        """Return whether the newer scope has another document or a lower number than this view.
        Within one activation, both are possible only if the store has stepped back.
        """
        if newer.activated_ms is None or newer.activated_ms != self.activated_ms:
            return False
        if newer.incarnation != self.incarnation:
            return newer.incarnation < self.incarnation
        tag = document_tag(newer.activated_ms, newer.incarnation, visible_events(newer))
        return tag != self.tag

    @property
    def tag(self) -> str:
        """The entity tag of the document. It is computed when it is first used."""
        if self._tag is None:
            shown = () if self._shown is None else visible_events(self._shown)
            self._tag = document_tag(self.activated_ms, self.incarnation, shown)
        return self._tag

    def take_unseen(self, version: ApiVersion) -> tuple[EventId, ...]:
        """Return the unseen events that a document of this version shows, each event once."""
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
        """Return the body of the document. The scope must be activated."""
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
    """An instance and its scope's view. It stays the same object while the instance is live."""

    __slots__ = ("agent", "allowance", "is_live", "last_s", "name", "per_minute", "polls",
                 "sampled", "second", "view")  # fmt: skip

    def __init__(self, name: InstanceName, view: View) -> None:
        self.name = name
        self.view = view
        self.is_live = True
        self.second = 0
        self.allowance = 0
        """How many requests are left in the second `second`, for the rate limit of the endpoint."""
        self.polls = 0
        """The number of polls since this node started. A poll counts nothing else, to be fast."""
        self.agent = ""
        self.sampled = 0
        """The value of `polls` at the last sample."""
        self.per_minute = 0.0
        self.last_s = 0.0
        """When the last sample found new polls, in seconds since 1970. 0 means never."""
