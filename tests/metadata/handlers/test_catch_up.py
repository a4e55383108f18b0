"""A client that moves between nodes gets no older document than the one it has."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, ScopeId
from fairwarning.engine.protocols import Signal
from fairwarning.engine.scope_view import View
from fairwarning.engine.service import Engine
from fairwarning.metadata.polls import is_ahead, matches
from fairwarning.metadata.settings import EndpointRules
from tests.engine.shared_store import SharedStore
from tests.metadata.cluster import cluster
from tests.metadata.rig import PATH, Response, Rig, request
from tests.support.patience import HANG_S

WAIT = f"{PATH}&wait="


class Behind(Rig):
    """A node that hears of nothing, beside one that writes."""

    store: SharedStore

    def __init__(self, rules: EndpointRules | None = None, *, test: bool = True) -> None:
        super().__init__(rules, test=test, make_store=SharedStore)

    async def start(self, host: str = "127.0.0.1") -> None:
        await super().start(host)
        await self.ask()
        await self.until_rested()
        self.store.signals = []
        assert self.engine._follower is not None
        for task in self.engine._background:
            if task.get_name() == "follower":
                task.cancel()

    async def until_rested(self) -> None:
        """All that was signalled is read, so that the store is left alone from here on."""
        views = self.engine.views
        async with asyncio.timeout(HANG_S):
            while views._rereads._running:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def write(self, target: str = "web-0") -> EventId:
        """A commit of another node."""
        return await self.schedule(target)

    async def newest(self) -> str:
        """The tag of the document as it is stored."""
        view = View(self.web.id, is_test=True)
        view.put(await self.store.read(self.web.id))
        return view.tag

    async def ask_with(self, tag: str, path: str = PATH, source: str = "127.0.1.10") -> Response:
        return await self.ask(
            path, headers={"Metadata": "true", "If-None-Match": tag}, source=source
        )

    @property
    def reads(self) -> int:
        return self.store.calls["read"]


@pytest.fixture
async def rig() -> AsyncIterator[Behind]:
    rig = Behind()
    await rig.start()
    yield rig
    rig.store.down.clear()
    await rig.stop()


async def test_a_node_that_is_behind_reads_before_it_answers(rig: Behind) -> None:
    old = (await rig.ask()).headers["etag"]
    id = await rig.write()
    newest = await rig.newest()
    assert (await rig.ask()).headers["etag"] == old, "without a tag memory answers"
    assert (await rig.ask_with(newest)).status == 304
    assert (await rig.ask()).shows(id)


async def test_what_is_newer_still_is_shown(rig: Behind) -> None:
    await rig.write("web-0")
    seen = await rig.newest()
    id = await rig.write("web-1")
    response = await rig.ask_with(seen)
    assert (response.status, response.headers["etag"]) == (200, await rig.newest())
    assert response.shows(id)


async def test_a_later_activation_is_newer_too(rig: Behind) -> None:
    first = (await rig.ask()).headers["etag"]
    incarnation, activation, digest = first.strip('"').split("-")
    later = f'"{incarnation}-{int(activation, 16) + 5:x}-{digest}"'
    before = rig.reads
    assert (await rig.ask_with(later)).headers["etag"] == first
    assert rig.reads == before + 1


@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', '{}, "y"'])
async def test_the_tag_may_be_written_in_any_way(rig: Behind, form: str) -> None:
    await rig.write()
    assert (await rig.ask_with(form.format(await rig.newest()))).status == 304


async def test_a_poll_that_waits_is_not_answered_with_the_older_document(rig: Behind) -> None:
    await rig.write()
    newest = await rig.newest()
    client = await rig.connect()
    headers = {"Metadata": "true", "If-None-Match": newest}
    await client.send(request(WAIT + "300", headers=headers))
    view = rig.engine.views._views[rig.web.id]
    async with asyncio.timeout(HANG_S):
        while not view.listeners:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert view.tag == newest
    id = await rig.write("web-1")
    await rig.engine.views.refresh(rig.web.id)
    response = await client.receive()
    assert response.shows(id)


@pytest.mark.parametrize("path", [PATH, WAIT + "300"])
async def test_while_the_store_is_down_there_is_no_answer_rather_than_an_older_one(
    rig: Behind, path: str
) -> None:
    await rig.write()
    newest = await rig.newest()
    old = (await rig.ask()).headers["etag"]
    rig.store.down.add("read")
    response = await rig.ask_with(newest, path)
    assert (response.status, response.headers["retry-after"]) == (503, "1")
    assert (await rig.ask_with(old)).status == 304, "who has what the node has is answered"
    assert (await rig.ask()).status == 200
    rig.store.down.clear()
    assert (await rig.ask_with(newest)).status == 304


async def test_ordinary_polls_never_touch_the_store(rig: Behind) -> None:
    tag = (await rig.ask()).headers["etag"]
    await rig.until_rested()
    before = rig.store.calls.total()
    for given in ("", tag, f"W/{tag}", "*", '"0"', "0", '"nonsense"', '"-1-"', '"9-zz-1"'):
        assert (await rig.ask_with(given) if given else await rig.ask()).status in (200, 304)
    assert rig.store.calls.total() == before


async def test_a_made_up_tag_writes_nothing_and_costs_one_read_at_a_time(rig: Behind) -> None:
    await rig.ask()
    before, written = rig.reads, len(rig.store._entries)
    view = rig.engine.views._views[rig.web.id]
    made_up = f'"999999-{(view.activated_ms or 0) + 10**9:x}-00000000"'
    answers = await asyncio.gather(*(rig.ask_with(made_up) for _ in range(40)))
    assert {each.status for each in answers} == {200}
    assert {each.headers["etag"] for each in answers} == {view.tag}
    assert rig.reads - before <= 40
    assert len(rig.store._entries) == written
    assert rig.engine.step_backs == 0


async def test_made_up_tags_stay_within_the_rate_limit() -> None:
    rig = Behind(EndpointRules(requests_per_second_max=3), test=False)
    await rig.start()
    client = await rig.connect()
    made_up = {"Metadata": "true", "If-None-Match": f'"9-{10**13:x}-00000000"'}
    statuses, before = [], rig.reads
    for _ in range(40):
        await client.send(request(headers=made_up))
        statuses.append((await client.receive()).status)
    assert statuses.count(429) > 20
    assert rig.reads - before == statuses.count(200)
    await rig.stop()


async def test_a_tag_that_is_ahead_is_counted_once() -> None:
    """On a fresh connection the listener looks first, and then the connection."""
    rig = Behind(EndpointRules(requests_per_second_max=1_000), test=False)
    await rig.start()
    headers = {
        "Metadata": "true",
        "If-None-Match": f'"9-{10**13:x}-00000000"',
        "Connection": "close",
    }
    member = rig.engine.views.by_address("127.0.1.10")
    assert member is not None
    for _ in range(2):
        member.second = -1
        response = await rig.ask(headers=headers)
        assert response.status == 200
        assert member.allowance == 999
    await rig.stop()


@pytest.mark.parametrize("resets", [False, True])
async def test_a_client_that_leaves_meanwhile_is_forgotten(rig: Behind, resets: bool) -> None:
    await rig.write()
    newest = await rig.newest()
    gate = asyncio.Event()
    rereads = rig.engine.views._rereads
    read = rereads._read

    async def slow(scope_id: ScopeId) -> None:
        await gate.wait()
        await read(scope_id)

    rereads._read = slow
    client = await rig.connect()
    await client.send(request(WAIT + "300", headers={"Metadata": "true", "If-None-Match": newest}))
    async with asyncio.timeout(HANG_S):
        while not rereads._running:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        client.leave(resets=resets)
        if resets:
            await rig.until_alone()
        gate.set()
        await rig.until_alone()
    await rig.until_rested()
    assert not rig.engine.views._views[rig.web.id].listeners


def test_which_tags_are_ahead() -> None:
    view = View(ScopeId("s"), is_test=True)
    view.activated_ms, view.incarnation = Instant(0x500), 7
    tag = view.tag
    digest = tag[-9:-1]
    for ahead in ('"8-500-00000000"', '"7-501-00000000"', '"1-600"', "W/\"8-500\"",
                  '"1-1", "8-500"', '"7-500-ffffffff"', '"7-500"'):  # fmt: skip
        assert is_ahead(ahead, view), ahead
    for behind in ('"6-500-00000000"', '"99-4ff-00000000"', "*", "", '"x"', '"7"', '"7-"',
                   '"stale-8-500-00000000"', '"8-500-0000"', '"-8-500"', '"8-500-00000000-1"',
                   '"' + "9" * 40 + '-500"', '"8-' + "f" * 40 + '"'):  # fmt: skip
        assert not is_ahead(behind, view), behind
    assert matches(tag, tag)
    assert matches(f"W/{tag}", tag)
    assert matches(f'"7-500-{digest}"', tag)


async def test_two_real_nodes(postgres_dsn: str) -> None:
    """On PostgreSQL: one that hears of nothing, and a client that comes from the other."""
    async with cluster(postgres_dsn) as found:
        one, deaf = found.nodes
        await one.ask()
        first = await one.schedule("web-0")
        await found.until_shown(first)
        make_deaf(deaf.engine)
        was_behind = 0
        for target in ("web-1", "web-2", "web-3"):
            id = await one.schedule(target)
            tag = await one.tag()
            # A read that was on its way may have brought it.
            was_behind += not (await deaf.ask()).shows(id)
            waiting = await deaf.connect("127.0.1.11")
            headers = {"Metadata": "true", "If-None-Match": tag}
            await waiting.send(request(WAIT + "1", headers=headers))
            assert (await deaf.ask(tag)).status == 304
            assert (await deaf.ask()).shows(id)
            assert (await waiting.receive()).status == 304
            await waiting.close()
        assert was_behind


def make_deaf(engine: Engine) -> None:
    def hear(signal: Signal) -> None:
        """Nothing."""

    engine.views.on_signal = hear  # type: ignore[method-assign]
    for task in engine._background:
        if task.get_name() == "follower":
            task.cancel()


@pytest.fixture
async def lone() -> AsyncIterator[Rig]:
    """One node on a store of its own: if it has stepped back, only a client can know."""
    lone = Rig()
    await lone.start()
    yield lone
    await lone.stop()


async def _ask_with(rig: Rig, tag: str) -> Response:
    return await rig.ask(headers={"Metadata": "true", "If-None-Match": tag})


@pytest.mark.parametrize("lost", ['"3-{}-00000000"', '"2-{}-12345678"'])
async def test_a_tag_that_the_store_has_lost_begins_a_new_activation(lone: Rig, lost: str) -> None:
    await lone.ask()
    await lone.schedule("web-0")
    first = await lone.ask()
    number, activation, _ = first.headers["etag"].strip('"').split("-")
    assert number == "2"
    answered = await _ask_with(lone, lost.format(activation))
    assert answered.status == 200
    assert answered.incarnation == 1
    assert answered.events == first.events
    assert answered.headers["etag"].split("-")[1] != activation
    again = await _ask_with(lone, answered.headers["etag"])
    assert again.status == 304, "who has the new tag is up to date"


@pytest.mark.parametrize("tag", ['"2-{}"', '"1-{}-00000000"', '"9-1-00000000"', "*", "x"])
async def test_other_tags_begin_nothing(lone: Rig, tag: str) -> None:
    """One without content, an older one, one of an older activation, and no tag of ours."""
    await lone.ask()
    await lone.schedule("web-0")
    first = (await lone.ask()).headers["etag"]
    await _ask_with(lone, tag.format(first.split("-")[1]))
    assert (await lone.ask()).headers["etag"] == first


async def test_made_up_tags_begin_an_activation_only_every_few_seconds(lone: Rig) -> None:
    tag = (await lone.ask()).headers["etag"]
    seen = {tag}
    for _ in range(20):
        answered = await _ask_with(lone, f'"7-{tag.split("-")[1]}-00000000"')
        tag = answered.headers["etag"]
        seen.add(tag)
    assert len(seen) == 2
