"""This module keeps the documents of all scopes in memory.

Theory of operation. A poll must not use the store, so each scope has a `View`. A commit of this
node updates the view before the caller gets its answer. When another node signals a change, the
scope is read again. The higher revision wins, so the order in which changes arrive does not matter.
A view keeps its scope only while it shows events; an idle fleet takes a few hundred bytes for each
instance.

This is right as long as the store keeps its past. When the store has stepped back (lost a part of
its past), a new era begins. A view of an earlier era stays as it is until its scope is read in the
new era, and is then replaced whatever its revision is. If a document number may already have been
served with another document, the scope first begins a new activation.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from itertools import count, islice
from typing import NamedTuple

from fairwarning.common.garbage_collection import paused_collections
from fairwarning.core.commands import BeginAnew
from fairwarning.core.model import InstanceName, Roster, Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.core.scope_names import by_last_parts, by_resource
from fairwarning.engine.address_index import AddressIndex
from fairwarning.engine.packed_rosters import PackedRosters
from fairwarning.engine.protocols import DocumentStore, Entry, Receipt, Signal, StoreDown
from fairwarning.engine.rereads import Rereads, batches
from fairwarning.engine.scope_view import Member, View
from fairwarning.engine.step_back import StepBack, must_begin_anew

PAGE_SCOPES_MAX = 1_000  # At the start nobody polls yet, so pages may be large.
RELOAD_SCOPES_MAX = 200
"""The number of scopes that a reload decodes at once. It is small, because polls wait then."""
SEARCH_SLICE = 10_000  # Polls wait while so many names are searched.
LOST = "the store had stepped back behind a document that was served"

BeginsAnew = Callable[[ScopeId, BeginAnew], Awaitable[Receipt]]


class OtherPast(StoreDown):
    """The store has an older state of a scope than this node has shown. Nothing was changed."""


class Summary(NamedTuple):
    scopes: int
    instances: int
    polling: int


class Views:
    """The views of the whole fleet, by address and by name."""

    def __init__(self, store: DocumentStore, begin_anew: BeginsAnew) -> None:
        self._store = store
        self.may_lag = store.is_shared
        """Whether another node may have shown a document that this node does not have yet."""
        self._begin_anew = begin_anew
        self._views: dict[ScopeId, View] = {}
        self._members: dict[ScopeId, dict[InstanceName, Member]] = {}
        self._addresses = AddressIndex(self.member)
        self.by_address: Callable[[str], Member | None] = self._addresses.find
        self._by_name: dict[str, Member | list[Member]] = {}
        self._deleted: dict[ScopeId, frozenset[InstanceName]] = {}
        """The deleted instances that each roster still contains, if it contains any."""
        self._empty_sets: set[ScopeId] = set()
        """The placement groups without instances of scale sets that nobody removed."""
        self.rosters = PackedRosters()
        """What instances may ask about themselves."""
        self._rereads = Rereads(self._read)
        self._called: dict[str, list[ScopeId]] = {}
        self._called_at = -1
        self._resources: Mapping[str, Sequence[ScopeId]] = {}
        self._resources_at = -1
        self.generation = 0
        """A number that rises when an address or a name is added or removed."""
        self._era = 0
        self._step_back: StepBack | None = None
        """The step back of the store that some views have not followed yet, or None."""
        self.contradicted: set[ScopeId] = set()
        """The scopes that are older in the store than before, which proves a step back."""
        self.on_contradiction: Callable[[], None] = lambda: None
        self.on_news: Callable[[ScopeId, int], None] = lambda _, __: None
        """A function that is called with the scope id and the new revision when a view changes."""
        self.on_shown: Callable[[Scope], None] = lambda _: None
        """A function that is called with each scope that is shown from now on."""
        self.on_era: Callable[[StepBack], None] = lambda _: None
        """A function that is called when a new era begins."""

    async def load(self) -> None:
        """Read all scopes, at the start or after some changes may have been missed."""
        doubtful: list[ScopeId] = []
        with paused_collections():
            async for page in self._stored(PAGE_SCOPES_MAX):
                for scope in page:
                    if (view := self._views.get(scope.id)) is None:
                        self._accept(scope)
                        continue
                    if scope.revision <= view.revision and not view.is_of(scope):
                        doubtful.append(scope.id)
                    await self._take(scope, self._era)
        # Each is either newer here than in the page, or the store has stepped back.
        await self.refresh(*doubtful)

    async def close(self) -> None:
        await self._rereads.close()

    def put(self, scope: Scope) -> None:
        """Show the scope after a commit of this node, unless a newer one is shown already."""
        view = self._views.get(scope.id)
        if view is None or (view.era == self._era and scope.revision > view.revision):
            if self._accept(scope):
                self.on_news(scope.id, scope.revision)
        elif self.may_lag and not view.is_of(scope):
            # The call came late, or the store has stepped back. A read of the store shows which.
            self._rereads.read_soon(scope.id)

    def refuse_other_past(self, stored: Scope) -> None:
        """Raise OtherPast if this node shows a newer or another state than the stored scope.

        The store has then stepped back, and a change would give a document number that was shown to
        a second document.
        """
        view = self._views.get(stored.id)
        if view is None or view.era != self._era or stored.revision > view.revision:
            return
        if not view.is_of(stored):
            # This is no proof of a step back, because this answer of the store may be old.
            self._rereads.read_soon(stored.id)
            raise OtherPast("the store has less than this node has shown; ask again in a moment")

    def on_signal(self, signal: Signal) -> None:
        """Show the scope that this node has changed, or read the one that another has changed."""
        if signal.scope is not None:
            self.put(signal.scope)
        elif signal.scope_id:
            self._rereads.read_soon(signal.scope_id)

    def on_entry(self, entry: Entry) -> None:
        """Read the scope again if its view is older, because a signal of the change can be lost."""
        if not entry.scope_id:
            # The entry belongs to no scope.
            return
        view = self._views.get(entry.scope_id)
        if view is None or view.revision < entry.revision:
            self._rereads.read_soon(entry.scope_id)

    async def refresh(self, *scope_ids: ScopeId) -> None:
        """Show these scopes as they are stored now, or newer. Raises StoreDown."""
        await self._rereads.read_all(scope_ids)

    @property
    def behind_since_s(self) -> float:
        """The time since which a changed scope waits to be shown. It is infinite if none waits."""
        return self._rereads.oldest_s

    @property
    def is_reloading(self) -> bool:
        """Whether some views have not followed a step back yet."""
        return self._step_back is not None

    def begin_era(self, step_back: StepBack) -> None:
        """Begin a new era after a step back. Only scopes that are read in this era count."""
        self._era += 1
        self._step_back = step_back.joined(self._step_back)
        self.contradicted.clear()
        self.on_era(step_back)

    async def reload(self) -> None:
        """Read all scopes again after a step back. If it raises StoreDown, call it again."""
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
        """Return whether the store has an older state of this scope than before (a step back)."""
        if known < 0:
            return False
        if scope is None or scope.revision < known:
            return True
        view = self._views[scope_id]
        return scope.revision == view.revision and not view.is_of(scope)

    async def _take(self, scope: Scope, era: int) -> None:
        """Show a scope that was read in this era, if nothing newer is shown."""
        view = self._views.get(scope.id)
        if view is not None and era == self._era and self._must_begin_anew(scope):
            scope = await self._anew(scope, view)
        if era != self._era:
            # The scope was read in an earlier era, so it may be lost.
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
        # Later than all that is not lost, so that each node can distinguish it from the past.
        known = (scope.activated_ms, view.activated_ms, self._step_back.common_ms)
        command = BeginAnew(
            activated_ms=scope.activated_ms,
            served_ms=max(each for each in known if each is not None),
            reason=LOST,
        )
        return (await self._begin_anew(scope.id, command)).scope

    async def begin_anew(self, view: View) -> None:
        """Begin a new activation, because the store has lost a document that an instance has."""
        assert view.activated_ms is not None
        command = BeginAnew(
            activated_ms=view.activated_ms, served_ms=view.activated_ms, reason=LOST
        )
        self.put((await self._begin_anew(view.scope_id, command)).scope)

    def _accept(self, scope: Scope) -> bool:
        """Show the scope. Returns False if it proves that the store has stepped back."""
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
        self.rosters.put(scope.id, scope.roster)
        view.put(scope, is_same_past=is_same_past)
        self.on_shown(scope)
        return True

    def by_name(self, name: str) -> list[Member]:
        found = self._by_name.get(name, [])
        return found if isinstance(found, list) else [found]

    def deleted(self, name: str) -> list[ScopeId]:
        """Return the scopes whose rosters still have a deleted instance of this name."""
        return [id for id, names in self._deleted.items() if name in names]

    def has_scope(self, scope_id: ScopeId) -> bool:
        """Return whether the scope has an instance, or stands for a scale set without instances."""
        return bool(self._members.get(scope_id)) or self._is_empty_set(scope_id)

    def ids(self) -> list[ScopeId]:
        """Return the ids of all scopes that have instances.

        A scale set without instances has one id too, which is that of its first placement group.
        """
        return [id for id, members in self._members.items() if members or self._is_empty_set(id)]

    def _is_empty_set(self, scope_id: ScopeId) -> bool:
        """Return whether the scope is the first of a scale set that has no instances at all."""
        if scope_id not in self._empty_sets:
            return False
        resource = scope_id.rpartition("/")[0]
        for group in count():
            id = ScopeId(f"{resource}/{group}")
            if id not in self._views:
                return True
            is_earlier = group < int(scope_id.rpartition("/")[2])
            if self._members.get(id) or (is_earlier and id in self._empty_sets):
                return False
        raise AssertionError("unreachable")

    def test_views(self) -> list[View]:
        """Return the views of all activated scopes of test fleets."""
        return [v for v in self._views.values() if v.is_test and v.activated_ms is not None]

    def has_test_scope(self) -> bool:
        return any(self._views[id].is_test for id in self.ids())

    def scopes_called(self, last: str) -> Sequence[ScopeId]:
        """Return the scopes whose id ends with this name, or with it and a placement group."""
        if self._called_at != self.generation:
            self._called_at = self.generation
            self._called = by_last_parts(self.ids())
        return self._called.get(last, ())

    async def resources(self) -> Mapping[str, Sequence[ScopeId]]:
        """Return the ids of all resources in order, each with its scopes. A scale set is one."""
        if self._resources_at != self.generation:
            at = self.generation
            # In a thread, because 100,000 scopes take 0.2 s, and polls must not wait for that.
            self._resources = await asyncio.to_thread(by_resource, self.ids())
            self._resources_at = at
        return self._resources

    async def search(self, text: str) -> list[ScopeId]:
        """Return the scopes with this text in their id or an instance's name, in any case."""
        wanted, found = text.lower(), list[ScopeId]()
        async for id, members in self._in_slices():
            if wanted in id.lower() or any(wanted in name.lower() for name in members):
                found.append(id)
        return sorted(found)

    async def find_names(self, text: str, limit: int) -> list[str]:
        """Return at most `limit` names of instances that contain the text, in upper or lower case.

        The names are searched in slices, because there may be a million.
        """
        wanted, found = text.lower(), list[str]()
        names = list(self._by_name)
        for first in range(0, len(names), SEARCH_SLICE):
            part = names[first : first + SEARCH_SLICE]
            found += [name for name in part if wanted in name.lower()]
            if len(found) >= limit:
                break
            await asyncio.sleep(0)
        return sorted(found[:limit])

    def some_names(self, limit: int) -> list[str]:
        """Return the first names in alphabetical order, of the thousand that were added first."""
        return sorted(islice(self._by_name, 1_000))[:limit]

    def is_asked(self, scope_id: ScopeId) -> bool:
        """Return whether an instance of the scope has asked since the last note, or waits now."""
        view = self._views.get(scope_id)
        return view is not None and bool(view.is_asked or view.listeners)

    def note_asked(self, scope_ids: Iterable[ScopeId]) -> None:
        """Note that instances of these scopes have asked a worker."""
        for scope_id in scope_ids:
            if (view := self._views.get(scope_id)) is not None:
                view.is_asked = True

    def asked(self) -> list[View]:
        """Return the views that were asked since the last note, or that have a waiting poll."""
        return [each for each in self._views.values() if each.is_asked or each.listeners]

    async def summary(self) -> "Summary":
        """Return the size of the fleet, and how many instances have polled this node."""
        scopes = instances = polling = 0
        async for _, members in self._in_slices():
            scopes += 1
            instances += len(members)
            polling += len([each for each in members.values() if each.polls])
        return Summary(scopes=scopes, instances=instances, polling=polling)

    async def _in_slices(self) -> AsyncIterator[tuple[ScopeId, Mapping[InstanceName, Member]]]:
        """Yield each scope with its instances. Other work of the loop runs after each slice."""
        passed = 0
        for id in self.ids():
            members = self._members.get(id)
            if members is None:
                continue  # It was removed while other work ran.
            yield id, members
            passed += 1 + len(members)
            if passed >= SEARCH_SLICE:
                passed = 0
                await asyncio.sleep(0)

    def sample(self, now_s: float, since_s: float) -> None:
        """Update the polling rate of each instance that has polled since the last sample."""
        for member, polls in self.take_polls():
            member.last_s = now_s
            member.per_minute = polls * 60 / since_s

    def take_polls(self) -> list[tuple[Member, int]]:
        """Return the instances that have polled since the last call, each with how often."""
        found = []
        for members in self._members.values():
            for member in members.values():
                polls = member.polls - member.sampled
                if polls:
                    member.sampled = member.polls
                    found.append((member, polls))
        return found

    def member(self, scope_id: ScopeId, name: InstanceName) -> Member | None:
        return self._members.get(scope_id, {}).get(name)

    def members(self, scope_id: ScopeId) -> Collection[Member]:
        return self._members.get(scope_id, {}).values()

    def _enrol(self, view: View, roster: Roster) -> None:
        known = self._members.setdefault(view.scope_id, {})
        instances = roster.live
        live = {each.name for each in instances}
        self._note_deleted(view.scope_id, roster, live)
        self._note_empty_set(view.scope_id, is_empty=not live and roster.is_standing)
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
            if self._by_name.setdefault(name, member) is not member:
                self._share_name(member)
        rivals = self._addresses.claim(view.scope_id, addresses)
        for name in sorted(gone):
            self._retire(known.pop(name))
        if gone or not before.items() <= addresses.items():
            # End long-polls of deleted instances, or from addresses that belong to others now.
            view.wake()
        for rival in sorted(rivals):
            # One of the two has given it up. Until we know which, the address has no owner.
            self._views[rival].wake()
            self._rereads.read_soon(rival)
        if rivals:
            self._rereads.read_soon(view.scope_id)

    def _remove(self, view: View) -> None:
        """Remove the view of a scope that the store no longer has after a step back."""
        self._change_members(view, set(), {})
        del self._views[view.scope_id]
        del self._members[view.scope_id]
        self.rosters.remove(view.scope_id)
        self._deleted.pop(view.scope_id, None)
        self._empty_sets.discard(view.scope_id)

    def _note_empty_set(self, id: ScopeId, *, is_empty: bool) -> None:
        if is_empty == (id in self._empty_sets):
            return
        self.generation += 1
        if is_empty:
            self._empty_sets.add(id)
        else:
            self._empty_sets.remove(id)

    def _note_deleted(self, id: ScopeId, roster: Roster, live: set[InstanceName]) -> None:
        """Remember the deleted instances. Most scopes have none and take no memory here."""
        if len(live) < len(roster.instances):
            self._deleted[id] = frozenset(roster.instances.keys() - live)
        else:
            self._deleted.pop(id, None)

    def _share_name(self, member: Member) -> None:
        """Add a member whose name others have too. Only such a name has a list of members."""
        shared = self._by_name[member.name] = self.by_name(member.name)
        shared.append(member)

    def _retire(self, member: Member) -> None:
        member.is_live = False
        rest = [each for each in self.by_name(member.name) if each is not member]
        if rest:
            self._by_name[member.name] = rest
        else:
            del self._by_name[member.name]
