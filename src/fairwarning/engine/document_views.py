"""This module keeps the documents of every scope of the fleet ready in memory.

Theory of operation. A poll must not touch the store, so each scope has a `View` that is replaced
when its scope changes: by the signal of this node's own commits, before the caller hears of them,
and by a re-read when another node signals. The higher revision wins, so the order in which news
arrives does not matter. A view keeps its scope only while it shows events; an idle fleet costs a
few hundred bytes an instance.

That rule holds as long as the store keeps its past. When it has stepped back, a new era begins: a
view of an earlier era is replaced by what is read in this one, whatever its revision, and until
then it stays as it is. A scope is shown again only after it has begun anew, if a number of its
activation may have been served with another document.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from itertools import islice
from typing import NamedTuple

from fairwarning.core.commands import BeginAnew
from fairwarning.core.model import InstanceName, Roster, Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.engine.address_index import AddressIndex
from fairwarning.engine.protocols import Entry, Receipt, Signal, Store, StoreDown
from fairwarning.engine.rereads import Rereads, batches
from fairwarning.engine.scope_view import Member, View
from fairwarning.engine.step_back import StepBack, must_begin_anew

PAGE_SCOPES_MAX = 1_000
RELOAD_SCOPES_MAX = 200
"""How many scopes are read in a page during a reload: polls wait while a page is decoded."""
LOST = "the store had stepped back behind a document that was served"

BeginsAnew = Callable[[ScopeId, BeginAnew], Awaitable[Receipt]]


class OtherPast(StoreDown):
    """The store has less of a scope than this node has shown. Nothing was changed."""


class Summary(NamedTuple):
    scopes: int
    instances: int
    polling: int


class Views:
    """The views of the whole fleet, by address and by name."""

    def __init__(self, store: Store, begin_anew: BeginsAnew) -> None:
        self._store = store
        self.may_lag = store.is_shared
        """Whether another node may have shown a document that is not here yet."""
        self._begin_anew = begin_anew
        self._views: dict[ScopeId, View] = {}
        self._members: dict[ScopeId, dict[InstanceName, Member]] = {}
        self._addresses = AddressIndex(self.member)
        self.by_address: Callable[[str], Member | None] = self._addresses.find
        self._by_name: dict[str, Member | list[Member]] = {}
        self._deleted: dict[ScopeId, frozenset[InstanceName]] = {}
        """Whom the rosters still know as deleted; only of scopes that have such."""
        self._rereads = Rereads(self._read)
        self._called: dict[str, list[ScopeId]] = {}
        self._called_at = -1
        self.generation = 0
        """Goes up when an address or a name comes or goes."""
        self._era = 0
        self._step_back: StepBack | None = None
        """What some views have not followed yet."""
        self.contradicted: set[ScopeId] = set()
        """Scopes of which the store knows less than it said before: it has stepped back."""
        self.on_contradiction: Callable[[], None] = lambda: None
        self.on_news: Callable[[ScopeId, int], None] = lambda _, __: None
        """Hears the revision of each view that changes."""

    async def load(self) -> None:
        """Read the fleet once, at the start."""
        async for page in self._stored(PAGE_SCOPES_MAX):
            for scope in page:
                await self._take(scope, self._era)

    async def close(self) -> None:
        await self._rereads.close()

    def put(self, scope: Scope) -> None:
        """Show the scope as a commit of this node has left it. Such news may come late."""
        view = self._views.get(scope.id)
        if view is None or (view.era == self._era and scope.revision > view.revision):
            if self._accept(scope):
                self.on_news(scope.id, scope.revision)
        elif self.may_lag and not view.is_of(scope):
            # It came late, or the store has stepped back. Only the store can tell.
            self._rereads.read_soon(scope.id)

    def refuse_other_past(self, stored: Scope) -> None:
        """A scope that this node is about to change must be the one that it shows.

        If the store has less, or another of the same revision, it has stepped back, and a change
        would give a number that was shown to a second document. Raises OtherPast.
        """
        view = self._views.get(stored.id)
        if view is None or view.era != self._era or stored.revision > view.revision:
            return
        if not view.is_of(stored):
            # It is no proof: this answer of the store may have been on its way for long.
            self._rereads.read_soon(stored.id)
            raise OtherPast("the store has less than this node has shown; ask again in a moment")

    def on_signal(self, signal: Signal) -> None:
        """Follow a signal: a commit of this node brings its scope along; another node's is read
        again.
        """
        if signal.scope is not None:
            self.put(signal.scope)
        elif signal.scope_id:
            self._rereads.read_soon(signal.scope_id)

    def on_entry(self, entry: Entry) -> None:
        """Read what the journal tells, because signals of other nodes may be lost and the journal
        loses nothing.
        """
        if not entry.scope_id:
            # A line outside all scopes: there is nothing to see anew.
            return
        view = self._views.get(entry.scope_id)
        if view is None or view.revision < entry.revision:
            self._rereads.read_soon(entry.scope_id)

    async def refresh(self, *scope_ids: ScopeId) -> None:
        """Show what is stored now of these scopes, or newer. Raises StoreDown."""
        await self._rereads.read_all(scope_ids)

    @property
    def behind_since_s(self) -> float:
        """Since when news of some scope waits to be shown; infinite if there is none."""
        return self._rereads.oldest_s

    @property
    def is_reloading(self) -> bool:
        """Whether some views have not followed a step back yet."""
        return self._step_back is not None

    def begin_era(self, step_back: StepBack) -> None:
        """Count only what is read from now on."""
        self._era += 1
        self._step_back = step_back.joined(self._step_back)
        self.contradicted.clear()

    async def reload(self) -> None:
        """Follow a step back with all views. Raises StoreDown; call it again then."""
        era = self._era
        async for page in self._stored(RELOAD_SCOPES_MAX):
            for scopes in batches([each for each in page if self._must_begin_anew(each)]):
                await asyncio.gather(*(self._take(scope, era) for scope in scopes))
            for scope in page:
                await self._take(scope, era)
        for view in [each for each in self._views.values() if each.era != era]:
            self._remove(view)
        self._step_back = None

    async def _stored(self, page_max: int) -> AsyncIterator[list[Scope]]:
        after: ScopeId | None = None
        while page := await self._store.scopes(after=after, limit=page_max):
            yield page
            after = page[-1].id

    async def _read(self, scope_id: ScopeId) -> None:
        era, view = self._era, self._views.get(scope_id)
        known = view.revision if view is not None and view.era == era else -1
        try:
            scope = await self._store.read(scope_id)
        except Refused:
            scope = None
        if era == self._era and self._is_less(scope, scope_id, known):
            self.contradicted.add(scope_id)
            self.on_contradiction()
        elif scope is not None:
            await self._take(scope, era)
            if scope.revision > known:
                self.on_news(scope_id, scope.revision)

    def _is_less(self, scope: Scope | None, scope_id: ScopeId, known: int) -> bool:
        """Whether the store has lost what it said of this scope before it was asked again.

        It never removes a scope, and a revision is never another scope than it was.
        """
        if known < 0:
            return False
        if scope is None or scope.revision < known:
            return True
        view = self._views[scope_id]
        return scope.revision == view.revision and not view.is_of(scope)

    async def _take(self, scope: Scope, era: int) -> None:
        """Show a scope that was read in this era."""
        view = self._views.get(scope.id)
        if view is not None and era == self._era and self._must_begin_anew(scope):
            scope = await self._anew(scope, view)
        if era != self._era:
            # Read from a past that may be gone.
            self._rereads.read_soon(scope.id)
        elif view is None or view.era != era or scope.revision > view.revision:
            self._accept(scope)

    def _must_begin_anew(self, scope: Scope) -> bool:
        view, step_back = self._views.get(scope.id), self._step_back
        if view is None or view.era == self._era or step_back is None:
            return False
        return must_begin_anew(view, scope, step_back)

    async def _anew(self, scope: Scope, view: View) -> Scope:
        assert scope.activated_ms is not None
        assert self._step_back is not None
        # Behind all that is shared, so that every node can tell it from what was before.
        known = (scope.activated_ms, view.activated_ms, self._step_back.common_ms)
        command = BeginAnew(
            activated_ms=scope.activated_ms,
            served_ms=max(each for each in known if each is not None),
            reason=LOST,
        )
        return (await self._begin_anew(scope.id, command)).scope

    async def begin_anew(self, view: View) -> None:
        """Begin a new activation, because an instance has a document of this one that the store has
        lost.
        """
        assert view.activated_ms is not None
        command = BeginAnew(
            activated_ms=view.activated_ms, served_ms=view.activated_ms, reason=LOST
        )
        self.put((await self._begin_anew(view.scope_id, command)).scope)

    def _accept(self, scope: Scope) -> bool:
        """Show the scope. False if it can't follow from what is shown, so that the store has
        stepped back.
        """
        view = self._views.get(scope.id)
        if view is None:
            view = self._views[scope.id] = View(scope.id, is_test=scope.roster.test)
        is_same_past = view.era == self._era
        if is_same_past and self.may_lag and view.is_contradicted_by(scope):
            self.contradicted.add(scope.id)
            self.on_contradiction()
            return False
        view.era, view.is_test = self._era, scope.roster.test
        self._enrol(view, scope.roster)
        view.put(scope, is_same_past=is_same_past)
        return True

    def by_name(self, name: str) -> list[Member]:
        found = self._by_name.get(name, [])
        return found if isinstance(found, list) else [found]

    def deleted(self, name: str) -> list[ScopeId]:
        """The scope in which an instance of this name was deleted, as long as the scope remembers
        it.
        """
        return [id for id, names in self._deleted.items() if name in names]

    def has_scope(self, scope_id: ScopeId) -> bool:
        """Whether there is such a scope with an instance in it."""
        return bool(self._members.get(scope_id))

    def ids(self) -> list[ScopeId]:
        """The ids of all scopes that have instances."""
        return [id for id, members in self._members.items() if members]

    def test_views(self) -> list[View]:
        """The views of the activated scopes of test fleets."""
        return [v for v in self._views.values() if v.is_test and v.activated_ms is not None]

    def has_test_scope(self) -> bool:
        return any(self._views[id].is_test for id in self.ids())

    def scopes_called(self, last: str) -> Sequence[ScopeId]:
        """The scopes whose id has this name as its last part, or as the last but one: a scale set's
        name.
        """
        if self._called_at != self.generation:
            self._called_at = self.generation
            self._called = _by_last_parts(self.ids())
        return self._called.get(last, ())

    def search(self, text: str) -> list[ScopeId]:
        """The scopes that have this text in their id or in an instance's name, in any case."""
        wanted = text.lower()
        return sorted(
            id
            for id, members in self._members.items()
            if members and (wanted in id.lower() or any(wanted in name.lower() for name in members))
        )

    def some_names(self, limit: int) -> list[str]:
        """The first names by the alphabet, of the first thousand that came."""
        return sorted(islice(self._by_name, 1_000))[:limit]

    def is_asked(self, scope_id: ScopeId) -> bool:
        """Whether an instance of the scope has asked this node of late, or waits now."""
        view = self._views.get(scope_id)
        return view is not None and bool(view.is_asked or view.listeners)

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
        """Work out which instances poll and how often, since the last sample."""
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
        instances = roster.live
        live = {each.name for each in instances}
        self._note_deleted(view.scope_id, roster, live)
        addresses = {a: each.name for each in instances for a in each.addresses}
        if live == known.keys() and addresses == self._addresses.claims_of(view.scope_id):
            return
        self._change_members(view, live, addresses)

    def _change_members(
        self, view: View, live: set[InstanceName], addresses: Mapping[str, InstanceName]
    ) -> None:
        self.generation += 1
        known = self._members[view.scope_id]
        before = self._addresses.claims_of(view.scope_id)
        gone = known.keys() - live
        for name in sorted(live - known.keys()):
            member = known[name] = Member(name, view)
            self._add_name(member)
        rivals = self._addresses.claim(view.scope_id, addresses)
        for name in sorted(gone):
            self._retire(known.pop(name))
        if gone or not before.items() <= addresses.items():
            # Long-polls of an instance that is no more, or from an address that is another's.
            view.wake()
        for rival in sorted(rivals):
            # One of the two has let go. Until that is known the address is nobody's.
            self._views[rival].wake()
            self._rereads.read_soon(rival)
        if rivals:
            self._rereads.read_soon(view.scope_id)

    def _remove(self, view: View) -> None:
        """Remove a scope that the store does not know, and never did in the past that
        it has now.
        """
        self._change_members(view, set(), {})
        del self._views[view.scope_id]
        del self._members[view.scope_id]
        self._deleted.pop(view.scope_id, None)

    def _note_deleted(self, id: ScopeId, roster: Roster, live: set[InstanceName]) -> None:
        """Remember deleted instances. Most scopes have none, and cost nothing here."""
        if len(live) < len(roster.instances):
            self._deleted[id] = frozenset(roster.instances.keys() - live)
        else:
            self._deleted.pop(id, None)

    def _add_name(self, member: Member) -> None:
        """Enter a name. Names are unique in most fleets, so most entries are no list."""
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
