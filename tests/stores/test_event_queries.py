"""Lists of all events that ever were, under every filter and from every place."""

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from fairwarning.core.decide import Change
from fairwarning.core.instants import Instant
from fairwarning.core.lifecycle import fold
from fairwarning.core.model import (
    Event,
    EventId,
    EventType,
    InstanceName,
    Phase,
    Scope,
    ScopeId,
    Source,
    StartCause,
)
from fairwarning.core.transitions import Cancelled, Completed, Failed, Scheduled, Started
from fairwarning.core.transitions import ScopeTransition as Transition
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Choice, Mark, Moment, Store
from tests.core.builders import T0
from tests.stores.fleet import ME, declare, new_id, web

FLEET = (web("a"), web("b"), web("c"))
# A name that two scopes have, as roles of cloud services do.
SHARED = InstanceName("a-0")
END = Instant(T0 + 1)
ENDINGS: dict[Phase, tuple[type[Started | Cancelled | Completed | Failed], ...]] = {
    Phase.SCHEDULED: (),
    Phase.STARTED: (Started,),
    Phase.COMPLETED: (Started, Completed),
    Phase.CANCELLED: (Cancelled,),
    Phase.FAILED: (Started, Failed),
}

Listed = tuple[ScopeId, Event]


def some_event(dice: random.Random, scope: Scope) -> Event:
    """Few instants, so that the id often decides the order."""
    names = [*scope.roster.instances, SHARED]
    return Event(
        id=EventId(f"{dice.choice('0aAfFz')}{new_id()}"),
        type=dice.choice(list(EventType)),
        source=dice.choice(list(Source)),
        phase=Phase.SCHEDULED,
        resources=tuple(dice.sample(names, dice.randint(1, 3))),
        update_domain=0,
        created_ms=Instant(T0 + dice.randrange(10)),
        not_before_ms=T0,
    )


def to_phase(event: Event, kind: type[Started | Cancelled | Completed | Failed]) -> Transition:
    if kind is Started:
        return Started(event_id=event.id, cause=StartCause.DUE, at_ms=END)
    if kind is Completed:
        return Completed(event_id=event.id, at_ms=END)
    if kind is Failed:
        return Failed(event_id=event.id, reason="", at_ms=END)
    return Cancelled(event_id=event.id, reason="", at_ms=END)


async def write(store: Store, scope_id: ScopeId, *transitions: Transition) -> Scope:
    def step(scope: Scope, moment: Moment) -> Change:
        after = fold(scope, transitions)
        return Change(scope=after, transitions=transitions, next_deadline_ms=None)

    return (await store.transact(scope_id, step, by=ME)).scope


async def live(dice: random.Random, store: Store, scope: Scope) -> Listed:
    """An event that comes to some phase, step by step or all in one turn."""
    event = some_event(dice, scope)
    phase = dice.choice(list(Phase))
    steps = [Scheduled(event=event), *(to_phase(event, kind) for kind in ENDINGS[phase])]
    if dice.random() < 0.5:
        after = await write(store, scope.id, *steps)
    else:
        for step in steps:
            after = await write(store, scope.id, step)
    assert after.events[event.id].phase is phase
    return scope.id, after.events[event.id]


async def populate(store: Store, number: int) -> list[Listed]:
    """Newest first."""
    dice = random.Random(7)
    await declare(store, *FLEET)
    # The last scope stays without events.
    found = [await live(dice, store, dice.choice(FLEET[:2])) for _ in range(number)]
    return sorted(found, key=lambda each: (each[1].created_ms, each[1].id), reverse=True)


async def paged(store: Store, choice: Choice, limit: int) -> list[Listed]:
    found: list[Listed] = []
    before: Mark | None = None
    while page := await store.events(choice, before=before, limit=limit):
        assert len(page) <= limit
        found += page
        last = page[-1][1]
        before = Mark(created_ms=last.created_ms, event_id=last.id)
    return found


def wanted(choice: Choice, scope_id: ScopeId, event: Event) -> bool:
    filters = [
        not choice.phases or event.phase in choice.phases,
        not choice.types or event.type in choice.types,
        not choice.sources or event.source in choice.sources,
        choice.scope_id is None or scope_id == choice.scope_id,
        choice.instance is None or choice.instance in event.resources,
    ]
    return all(filters)


def some_choices(number: int) -> list[Choice]:
    dice = random.Random(3)
    singles = [
        Choice(),
        *(Choice(phases=(each,)) for each in Phase),
        *(Choice(types=(each, each)) for each in EventType),
        *(Choice(sources=(each,)) for each in Source),
        *(Choice(scope_id=each.id) for each in FLEET),
        *(Choice(instance=name) for name in (SHARED, InstanceName("b-3"), InstanceName("nobody"))),
    ]
    mixed = [
        Choice(
            phases=tuple(dice.sample(list(Phase), dice.randrange(4))),
            types=tuple(dice.sample(list(EventType), dice.randrange(4))),
            sources=tuple(dice.sample(list(Source), dice.randrange(3))),
            scope_id=dice.choice([None, *(scope.id for scope in FLEET)]),
            instance=dice.choice([None, SHARED, InstanceName("b-1")]),
        )
        for _ in range(number)
    ]
    return singles + mixed


async def test_every_filter_finds_its_events_in_order(store: Store) -> None:
    whole = await populate(store, 120)
    hits = 0
    for choice in some_choices(60):
        expected = [each for each in whole if wanted(choice, *each)]
        assert await store.events(choice, limit=1_000) == expected, choice
        assert await paged(store, choice, 7) == expected, choice
        hits += bool(expected)
    assert hits > 50, "the choices find too little"


async def test_a_list_goes_on_from_a_place_where_nothing_is(store: Store) -> None:
    whole = await populate(store, 30)
    created = Instant(T0 + 5)
    for id in (EventId(""), EventId("~")):
        expected = [each for each in whole if (each[1].created_ms, each[1].id) < (created, id)]
        assert 0 < len(expected) < 30
        place = Mark(created_ms=created, event_id=id)
        for choice in (Choice(), Choice(types=tuple(EventType)), Choice(instance=SHARED)):
            fitting = [each for each in expected if wanted(choice, *each)]
            assert await store.events(choice, before=place, limit=100) == fitting


async def test_new_events_do_not_move_the_pages_behind_them(
    store: Store, clock: VirtualClock
) -> None:
    whole = await populate(store, 20)
    last = whole[4][1]
    place = Mark(created_ms=last.created_ms, event_id=last.id)
    event = replace(some_event(random.Random(1), FLEET[0]), created_ms=Instant(T0 + 99))
    await write(store, FLEET[0].id, Scheduled(event=event))
    assert await store.events(Choice(), before=place, limit=5) == whole[5:10]
    assert (await store.events(Choice(), limit=1))[0][1].id == event.id


async def test_events_are_counted_by_type_and_phase(store: Store) -> None:
    assert dict(await store.count_events()) == {}
    whole = await populate(store, 60)
    expected = Counter((event.type, event.phase) for _, event in whole)
    assert dict(await store.count_events()) == expected


@pytest.mark.parametrize("instance", ["a'", "nul\0", "é"])
async def test_strange_names_find_nothing(store: Store, instance: str) -> None:
    await populate(store, 5)
    assert await store.events(Choice(instance=InstanceName(instance)), limit=10) == []
    assert await store.events(Choice(scope_id=ScopeId(instance)), limit=10) == []
