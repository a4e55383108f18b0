"""Whose an address is in the end is the store's word, in whatever order news comes."""

import asyncio
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.commands import BeginAnew
from fairwarning.core.model import Instance, InstanceName, Scope, ScopeId
from fairwarning.core.resources import VirtualMachine, expand
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Receipt
from tests.engine.shared_store import SharedStore

ADDRESS = "10.0.0.1"


async def never(_: ScopeId, command: BeginAnew) -> Receipt:
    raise AssertionError(command)


def vm(name: str) -> Scope:
    (scope,) = expand(VirtualMachine(name=name))
    return scope


def having(scope: Scope, revision: int, *addresses: str) -> Scope:
    """The same scope at this revision, with these addresses."""
    name = InstanceName(scope.id.rpartition("/")[2])
    roster = replace(scope.roster, instances={name: Instance(name=name, addresses=addresses)})
    return replace(scope, roster=roster, revision=revision)


X, Y, Z = vm("x"), vm("y"), vm("z")
ROUND_TRIP = [
    having(X, 1, ADDRESS),
    having(Y, 1),
    having(X, 2),
    having(Y, 2, ADDRESS),
    having(Y, 3),
    having(X, 3, ADDRESS),
]
"""From x to y and back, as the store went through it."""


class Told:
    """Views that are told by hand, and a store that has the end of the story."""

    def __init__(self, *final: Scope) -> None:
        self.store = SharedStore(VirtualClock())
        self.store._scopes = {scope.id: scope for scope in final}
        self.views = Views(self.store, never)

    def owner(self, address: str = ADDRESS) -> str | None:
        found = self.views.by_address(address)
        return None if found is None else found.name

    def is_sure(self) -> bool:
        """Nobody is answered as one of several who claim the address."""
        claims = [id for id in self.store._scopes
                  if ADDRESS in self.views._addresses.claims_of(id)]  # fmt: skip
        owner = self.views.by_address(ADDRESS)
        if len(claims) == 1:
            return owner is not None and owner.view.scope_id == claims[0]
        return owner is None

    async def settle(self) -> None:
        while self.views._rereads._running:
            await asyncio.gather(*self.views._rereads._running.values())


async def test_it_came_back_to_x_whatever_is_heard_first() -> None:
    for order in permutations(ROUND_TRIP):
        told = Told(ROUND_TRIP[5], ROUND_TRIP[4])
        for scope in order:
            told.views.put(scope)
            assert told.is_sure()
        await told.settle()
        assert told.owner() == "x", order
        await told.views.close()


WALKS = st.lists(st.sampled_from([X.id, Y.id, Z.id, None]), min_size=1, max_size=8)


@settings(max_examples=200)
@given(WALKS, st.randoms(use_true_random=False))
def test_any_walk_of_an_address_ends_with_its_owner(walk: list[ScopeId | None], dice) -> None:  # type: ignore[no-untyped-def]
    """News comes late, twice, out of order or never; in the end all scopes are read again."""

    async def hear() -> None:
        scopes = {each.id: having(each, 1) for each in (X, Y, Z)}
        news, owner = list(scopes.values()), None
        for place in walk:
            for id, has in ((owner, ()), (place, (ADDRESS,))):
                if id is not None and owner != place:
                    scopes[id] = having(scopes[id], scopes[id].revision + 1, *has)
                    news.append(scopes[id])
            owner = place
        told = Told(*scopes.values())
        heard = [each for each in news + news if dice.random() < 0.6]
        dice.shuffle(heard)
        for each in heard:
            told.views.put(each)
            assert told.is_sure()
            if dice.random() < 0.2:
                await told.settle()
        for id in scopes:
            await told.views.refresh(id)
        await told.settle()
        found = told.views.by_address(ADDRESS)
        assert (None if found is None else found.view.scope_id) == owner
        await told.views.close()

    asyncio.run(hear())


async def test_while_two_claim_it_nobody_is_answered_and_both_are_read() -> None:
    told = Told(having(X, 2), having(Y, 2, ADDRESS))
    told.views.put(having(X, 1, ADDRESS))
    before = told.views.generation
    told.views.put(having(Y, 2, ADDRESS))
    assert told.owner() is None
    assert told.views.generation > before, "connections must ask anew who they are"
    await told.settle()
    assert told.owner() == "y"
    assert told.store.calls["read"] == 2
    await told.views.close()


async def test_who_waits_at_an_address_that_another_claims_is_woken() -> None:
    told = Told(having(X, 1, ADDRESS), having(Y, 2, ADDRESS))
    told.views.put(having(X, 1, ADDRESS))
    woken: list[bool] = []
    member = told.views.by_address(ADDRESS)
    assert member is not None
    member.view.listen(lambda: woken.append(True))
    told.views.put(having(Y, 2, ADDRESS))
    assert woken
    await told.settle()
    await told.views.close()


async def test_an_address_can_pass_between_instances_of_one_scope() -> None:
    a, b = InstanceName("a"), InstanceName("b")
    both = {a: Instance(name=a, addresses=(ADDRESS,)), b: Instance(name=b)}
    first = replace(X, roster=replace(X.roster, instances=both), revision=1)
    moved = {a: Instance(name=a), b: Instance(name=b, addresses=(ADDRESS,))}
    second = replace(X, roster=replace(X.roster, instances=moved), revision=2)
    told = Told(second)
    told.views.put(first)
    assert told.owner() == "a"
    woken: list[bool] = []
    told.views._views[X.id].listen(lambda: woken.append(True))
    told.views.put(second)
    assert told.owner() == "b"
    assert woken, "who waits there as `a` must not hear what `b` may hear"
    assert not told.views._rereads._running
    await told.views.close()
