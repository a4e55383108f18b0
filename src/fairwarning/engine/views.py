"""What instances may see, ready in memory, for every scope of the fleet.

Theory of operation. A poll must not touch the store, so each scope has a `View` that is
replaced when its scope changes: by the receipt of this node's own commits, before the
caller hears of them, and by a re-read when another node signals. A higher revision always
wins, so the order in which news arrives does not matter. A view keeps its scope only
while it shows events; an idle fleet costs a few hundred bytes an instance.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from fairwarning.core.document import render, visible_events
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, InstanceName, Roster, Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.core.versions import ApiVersion
from fairwarning.engine.ports import Entry, Signal, Store, StoreDown

PAGE_SCOPES_MAX = 1_000
REREAD_PAUSE_S = 0.2

_log = logging.getLogger(__name__)


class View:
    """One scope as its instances see it."""

    __slots__ = ("_documents", "_shown", "activated_ms", "forms", "incarnation", "is_asked",
                 "is_test", "listeners", "revision", "scope_id", "unseen")  # fmt: skip

    def __init__(self, scope_id: ScopeId, *, is_test: bool) -> None:
        self.scope_id = scope_id
        self.is_test = is_test
        self.revision = -1
        self.activated_ms: Instant | None = None
        self.incarnation = 0
        self.is_asked = False
        """Whether an instance has asked since this was last noted in the store."""
        self.listeners: set[Callable[[], None]] | None = None
        """Called once, at the next change; made only while somebody waits."""
        self.forms: dict[int, tuple[bytes, bytes]] = {}
        """Where the endpoint keeps what it made of the documents; emptied at each change."""
        self.unseen = False
        """Whether the document may hold events that no instance has been shown."""
        self._documents: dict[str, bytes] = {}
        self._shown: Scope | None = None

    def put(self, scope: Scope) -> None:
        if scope.revision <= self.revision:
            return
        same = (scope.activated_ms, scope.incarnation) == (self.activated_ms, self.incarnation)
        self.revision = scope.revision
        if same:
            return
        self.activated_ms, self.incarnation = scope.activated_ms, scope.incarnation
        self._documents, self.forms = {}, {}
        shown = visible_events(scope)
        self._shown = scope if shown else None
        self.unseen = any(each.sight is None for each in shown)
        self.wake()

    def take_unseen(self) -> tuple[EventId, ...]:
        """The events to report as seen now; each is given out once."""
        self.unseen = False
        shown = () if self._shown is None else visible_events(self._shown)
        return tuple(each.id for each in shown if each.sight is None)

    def wake(self) -> None:
        waiting, self.listeners = self.listeners, None
        for listener in waiting or ():
            try:
                listener()
            except Exception:
                _log.exception("a waiting client of %s could not be told", self.scope_id)

    def document(self, version: ApiVersion) -> bytes:
        """The body for an activated scope."""
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
            self.listeners = set()
        self.listeners.add(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        if self.listeners is not None:
            self.listeners.discard(listener)


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


class Summary(NamedTuple):
    scopes: int
    instances: int
    polling: int


class Views:
    """The whole fleet, by address and by name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._views: dict[ScopeId, View] = {}
        self._members: dict[ScopeId, dict[InstanceName, Member]] = {}
        self._by_address: dict[str, Member] = {}
        self.by_address: Callable[[str], Member | None] = self._by_address.get
        self._addresses: dict[ScopeId, dict[str, InstanceName]] = {}
        self._by_name: dict[str, Member | list[Member]] = {}
        self._deleted: dict[ScopeId, frozenset[InstanceName]] = {}
        """Whom the rosters still know as deleted; only of scopes that have such."""
        self._reading: dict[ScopeId, asyncio.Task[None]] = {}
        self._again: set[ScopeId] = set()
        """Signalled once more while being read."""
        self._called: dict[str, list[ScopeId]] = {}
        self._called_at = -1
        self.generation = 0
        """Goes up when an address or a name comes or goes."""

    async def load(self) -> None:
        """Reads the fleet once, at the start."""
        after: ScopeId | None = None
        while page := await self._store.scopes(after=after, limit=PAGE_SCOPES_MAX):
            for scope in page:
                self.put(scope)
            after = page[-1].id

    async def close(self) -> None:
        tasks = list(self._reading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def put(self, scope: Scope) -> None:
        view = self._views.get(scope.id)
        if view is None:
            view = self._views[scope.id] = View(scope.id, is_test=scope.roster.test)
        if scope.revision > view.revision:
            view.is_test = scope.roster.test
            self._enrol(view, scope.roster)
            view.put(scope)

    def on_signal(self, signal: Signal) -> None:
        """A commit of this node brings its scope along; another's must be read."""
        if signal.scope is not None:
            self.put(signal.scope)
        elif signal.scope_id:
            self._read_soon(signal.scope_id)

    async def follow(self, changes: AsyncIterator[Entry]) -> None:
        """Makes good what signals of other nodes were lost: the journal loses nothing."""
        async for entry in changes:
            if not entry.scope_id:
                # A line outside all scopes: there is nothing to see anew.
                continue
            view = self._views.get(entry.scope_id)
            if view is None or view.revision < entry.revision:
                self._read_soon(entry.scope_id)

    def _read_soon(self, scope_id: ScopeId) -> None:
        if scope_id in self._reading:
            self._again.add(scope_id)
        else:
            self._reading[scope_id] = asyncio.create_task(self._reread(scope_id))

    async def _reread(self, scope_id: ScopeId) -> None:
        try:
            while True:
                self._again.discard(scope_id)
                try:
                    self.put(await self._store.read(scope_id))
                except StoreDown:
                    await asyncio.sleep(REREAD_PAUSE_S)
                    continue
                except Refused:
                    return
                if scope_id not in self._again:
                    return
        finally:
            # In the same turn as the last look at `_again`, so that no news falls in between.
            del self._reading[scope_id]

    def by_name(self, name: str) -> list[Member]:
        found = self._by_name.get(name, [])
        return found if isinstance(found, list) else [found]

    def deleted(self, name: str) -> list[ScopeId]:
        """Where an instance of this name was deleted, as long as its scope remembers it."""
        return [id for id, names in self._deleted.items() if name in names]

    def has_scope(self, scope_id: ScopeId) -> bool:
        """Whether there is such a scope, and somebody in it."""
        return bool(self._members.get(scope_id))

    def ids(self) -> list[ScopeId]:
        """Of every scope that has somebody in it."""
        return [id for id, members in self._members.items() if members]

    def test_views(self) -> list[View]:
        """Activated scopes of test fleets."""
        return [v for v in self._views.values() if v.is_test and v.activated_ms is not None]

    def has_test_scope(self) -> bool:
        return any(self._views[id].is_test for id in self.ids())

    def scopes_called(self, last: str) -> Sequence[ScopeId]:
        """Those whose id ends in this part, or has it last but one: a scale set's name."""
        if self._called_at != self.generation:
            self._called_at = self.generation
            self._called = _by_last_parts(self.ids())
        return self._called.get(last, ())

    def search(self, text: str) -> list[ScopeId]:
        """Scopes whose id, or an instance's name, holds this text, whatever its case."""
        wanted = text.lower()
        return sorted(
            id
            for id, members in self._members.items()
            if members and (wanted in id.lower() or any(wanted in name.lower() for name in members))
        )

    def some_names(self, limit: int) -> list[str]:
        """The first by the alphabet, of the first thousand that were enrolled."""
        return sorted(islice(self._by_name, 1_000))[:limit]

    def asked(self) -> list[View]:
        """The views to note as seen: asked since last time, or with somebody waiting now."""
        return [each for each in self._views.values() if each.is_asked or each.listeners]

    def summary(self) -> "Summary":
        """How large the fleet is, and how many of it have asked this node."""
        sizes = [members for members in self._members.values() if members]
        return Summary(
            scopes=len(sizes),
            instances=sum(map(len, sizes)),
            polling=sum(bool(each.polls) for members in sizes for each in members.values()),
        )

    def sample(self, now_s: float, since_s: float) -> None:
        """Works out who polls and how often, over the time since the last sample."""
        for members in self._members.values():
            for member in members.values():
                count = member.polls - member.sampled
                if count:
                    member.sampled = member.polls
                    member.last_s = now_s
                    member.per_minute = count * 60 / since_s

    def member(self, scope_id: ScopeId, name: InstanceName) -> Member | None:
        return self._members.get(scope_id, {}).get(name)

    def _enrol(self, view: View, roster: Roster) -> None:
        known = self._members.setdefault(view.scope_id, {})
        live = {each.name for each in roster.live}
        self._note_deleted(view.scope_id, roster, live)
        addresses = {a: each.name for each in roster.live for a in each.addresses}
        before = self._addresses.get(view.scope_id, {})
        if live == known.keys() and before == addresses:
            return
        self.generation += 1
        gone = known.keys() - live
        for name in gone:
            self._retire(known.pop(name))
        for name in live - known.keys():
            member = known[name] = Member(name, view)
            self._add_name(member)
        for address in before:
            owner = self._by_address.get(address)
            if owner is not None and owner.view is view:
                del self._by_address[address]
        self._addresses[view.scope_id] = addresses
        for address, name in addresses.items():
            self._by_address[address] = known[name]
        if gone or not before.items() <= addresses.items():
            # Whoever waits as an instance that he is no more must hear of it.
            view.wake()

    def _note_deleted(self, id: ScopeId, roster: Roster, live: set[InstanceName]) -> None:
        """Most scopes have lost nobody, and cost nothing here."""
        if len(live) < len(roster.instances):
            self._deleted[id] = frozenset(roster.instances.keys() - live)
        else:
            self._deleted.pop(id, None)

    def _add_name(self, member: Member) -> None:
        """Names are unique in most fleets, so most entries are no list."""
        others = self._by_name.get(member.name)
        if others is None:
            self._by_name[member.name] = member
        elif isinstance(others, list):
            others.append(member)
        else:
            self._by_name[member.name] = [others, member]

    def _retire(self, member: Member) -> None:
        member.is_live = False
        rest = [each for each in self.by_name(member.name) if each is not member]
        if rest:
            self._by_name[member.name] = rest
        else:
            del self._by_name[member.name]


def _by_last_parts(ids: Iterable[ScopeId]) -> dict[str, list[ScopeId]]:
    found: dict[str, list[ScopeId]] = {}
    for id in ids:
        for part in id.split("/")[-2:]:
            found.setdefault(part, []).append(id)
    return found
