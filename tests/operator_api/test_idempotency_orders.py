"""Whatever the order in which a request, its retry and a third come and end, it is done once.

The first is paused beyond its lease or dies, the retry comes on another node, a minute passes
somewhere in between, and then a third one asks. Every order of their calls to the store is tried.
"""

import asyncio

import pytest

from fairwarning.core.model import Actor
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.idempotency import KEPT_MS, Idempotency
from fairwarning.operator_api.record_leases import LEASE_MS
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.schemas import NoQuery, Out
from tests.notifications.rig import SharedStore
from tests.operator_api.interleavings import EVA, Choices, Request, minute_passes, requests
from tests.operator_api.two_nodes import pair

WAIT = "idempotency-in-progress"
BROKE_OFF = "request-broke-off"
MADE_BY_RETRY = '{"by":"retry"}'


class Made(Out):
    by: str


async def change(control: Control, call: Call[NoQuery, str], what: str) -> None:
    assert call.seed is not None
    note = Noted(subject=what, action="made", detail=call.body)
    await control.store.keep(what, call.seed, call.body, note=note, by=Actor(kind="x", name="x"))


async def made_by(control: Control, call: Call[NoQuery, str], what: str) -> Made:
    found = await control.store.record(what, call.seed or "")
    return Made(by="nobody" if found is None else found.body)


async def make(control: Control, call: Call[NoQuery, str]) -> Made:
    if not call.was_done:
        await change(control, call, "effect")
    return await made_by(control, call, "effect")


async def make_in_steps(control: Control, call: Call[NoQuery, str]) -> Made:
    await change(control, call, "effect")
    await change(control, call, "second")
    return Made(by=call.body)


async def make_or_refuse(control: Control, call: Call[NoQuery, str]) -> Made:
    """The first is told no, for reasons that are gone when the others ask."""
    if call.body == "first":
        raise Refused(Code.ALREADY_PENDING, "not now")
    return await make(control, call)


async def make_or_fail(control: Control, call: Call[NoQuery, str]) -> Made:
    """The first meets an outage, before it has done anything."""
    if call.body == "first":
        raise StoreDown("switched off by the test")
    return await make(control, call)


async def make_and_fail(control: Control, call: Call[NoQuery, str]) -> Made:
    """The first meets an outage when it is to say what it has done."""
    made = await make(control, call)
    if call.body == "first":
        raise StoreDown("switched off by the test")
    return made


def route(handle: object, **more: bool) -> Route:
    return Route(
        method="POST",
        path="/x",
        summary="",
        role=Role.VIEWER,
        handle=handle,  # type: ignore[arg-type]
        answer=Made,
        **more,  # type: ignore[arg-type]
    )


ROUTES = {
    "in one step": route(make),
    "in two steps": route(make_in_steps, is_in_steps=True),
    "refused at first": route(make_or_refuse),
    "failing at first": route(make_or_fail),
    "failing late at first": route(make_and_fail),
}


async def told(store: SharedStore, what: str) -> list[str]:
    lines = [each.transition for each in await store.journal(limit=99)]
    return [each.detail for each in lines if isinstance(each, Noted) and each.subject == what]


async def run(
    asked: Route, choices: Choices, *, kills: bool = False, loses_answer_of: str = ""
) -> None:
    """The first begins; then whoever the choices say, until both are over or dead."""
    store = SharedStore(VirtualClock())
    async with requests(store, asked, "first", "retry", "third") as (first, retry, third):
        first.gate.loses_answer_of = loses_answer_of
        story = await play(store, first, retry, choices, kills=kills)
        minute_passes(store)
        await third.finish()
        await check(store, asked, [first, retry, third], story)


async def play(
    store: SharedStore, first: Request, retry: Request, choices: Choices, *, kills: bool
) -> list[str]:
    await first.step()
    minutes, story = 1, ["first"]
    while not (first.is_over and retry.is_over):
        options = [each.name for each in (first, retry) if not each.is_over]
        options += ["minute"] * minutes
        if kills and not first.is_over:
            options.append("kill")
        story.append(choices.pick(options))
        match story[-1]:
            case "minute":
                minute_passes(store)
                minutes = 0
            case "kill":
                first.gate.is_dead = True
            case name:
                await (first if name == "first" else retry).step()
    return story


async def check(
    store: SharedStore, asked: Route, requests: list[Request], story: list[str]
) -> None:
    answers = [each.answer for each in requests]
    context = f"{story} {answers}"
    done = await told(store, "effect")
    assert len(done) <= 1, f"done more than once: {context}"
    successes = {each for each in answers if each.startswith("{")}
    assert len(successes) <= 1, f"different answers to one key: {context}"
    for success in successes:
        assert done, f"a success for what was not done: {context}"
        assert success == f'{{"by":"{done[0]}"}}', context
    if asked.is_in_steps:
        second = await told(store, "second")
        assert second in ([], done), context
        assert second == done or not successes, f"a success for half of it: {context}"
        assert answers[2] in (*successes, BROKE_OFF), context
    else:
        assert answers[2] in successes, f"the third must hear what was done: {context}"
    assert not requests[2].leases._at_work, "who is done is at work no more"
    allowed = {*successes, WAIT, BROKE_OFF, "already-pending", "store-down", "no answer"}
    assert set(answers) <= allowed, context


@pytest.mark.parametrize("name", ROUTES)
async def test_in_every_order_it_is_done_once_and_has_one_answer(name: str) -> None:
    choices, runs = Choices(), 1
    await run(ROUTES[name], choices)
    while choices.next_run():
        await run(ROUTES[name], choices)
        runs += 1
    assert runs > 100, "the orders are not many"


@pytest.mark.parametrize("kind", ["effect", "idempotency"])
@pytest.mark.parametrize("name", ["in one step", "in two steps"])
async def test_the_same_when_the_first_does_not_hear_whether_its_write_was_stored(
    name: str, kind: str
) -> None:
    choices = Choices()
    await run(ROUTES[name], choices, loses_answer_of=kind)
    while choices.next_run():
        await run(ROUTES[name], choices, loses_answer_of=kind)


@pytest.mark.parametrize("name", ["in one step", "in two steps"])
async def test_the_same_when_the_first_dies_at_any_moment(name: str) -> None:
    choices = Choices()
    await run(ROUTES[name], choices, kills=True)
    while choices.next_run():
        await run(ROUTES[name], choices, kills=True)


@pytest.mark.parametrize(("left_ms", "answer"), [(1, WAIT), (0, MADE_BY_RETRY)])
async def test_who_is_at_work_keeps_its_key_to_the_end_of_its_lease(
    left_ms: int, answer: str
) -> None:
    clock = VirtualClock()
    store, asked = SharedStore(clock), ROUTES["in one step"]
    async with requests(store, asked, "first", "retry") as (first, retry):
        for _ in range(3):
            await first.step()
        clock.step(LEASE_MS - left_ms)
        assert await retry.finish() == answer


async def test_a_clock_that_was_set_back_keeps_no_key_for_long() -> None:
    clock = VirtualClock()
    store, asked = SharedStore(clock), ROUTES["in one step"]
    async with requests(store, asked, "first", "retry") as (first, retry):
        for _ in range(3):
            await first.step()
        clock.step(-LEASE_MS)
        assert await retry.finish() == MADE_BY_RETRY
        assert await first.finish() == MADE_BY_RETRY


async def test_whoever_was_held_up_for_a_day_is_not_given_the_answer_to_another_question() -> None:
    """By then its key stands for new work."""
    clock = VirtualClock()
    store, asked = SharedStore(clock), ROUTES["in one step"]
    async with requests(store, asked, "first", "retry") as (first, retry):
        for _ in range(3):
            await first.step()
        clock.step(KEPT_MS + 1)
        assert await retry.finish() == MADE_BY_RETRY
        assert await first.finish() == WAIT
        assert await told(store, "effect") == ["retry"]


async def test_a_request_that_is_cancelled_leaves_its_key_to_the_next() -> None:
    async with pair() as nodes:
        is_at_work = asyncio.Event()

        async def wait(_: Control, __: Call[NoQuery, str]) -> Made:
            is_at_work.set()
            await asyncio.Event().wait()
            raise AssertionError

        call: Call[NoQuery, str] = Call(caller=EVA, path={}, query=NoQuery(), body="x", why="")
        first = asyncio.create_task(Idempotency(nodes.one).once(route(wait), call, "key", b"asked"))
        await is_at_work.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert first.cancelled()
        answer = await Idempotency(nodes.two).once(ROUTES["in one step"], call, "key", b"asked")
        assert answer.body == b'{"by":"x"}'
