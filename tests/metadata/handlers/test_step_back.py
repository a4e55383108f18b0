"""When the store's past changes under running nodes, they follow it under tags of their own."""

import asyncio
import logging

import pytest

from fairwarning.core.model import EventId, EventType
from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.core.transitions import Scheduled
from fairwarning.engine.protocols import StoreDown
from tests.metadata.cluster import Cluster, ClusterNode, cluster
from tests.metadata.rig import ME, Response, request
from tests.support.patience import HANG_S

WAIT = "/metadata/scheduledevents?api-version=2020-07-01&wait=300"


@pytest.fixture(autouse=True)
def nothing_breaks(caplog: pytest.LogCaptureFixture):  # type: ignore[no-untyped-def]
    """Nodes say loudly that the store has stepped back, and nothing else."""
    yield
    loud = [each for each in caplog.get_records("call") if each.levelno >= logging.ERROR]
    assert all("stepped back" in each.getMessage() for each in loud)


class Tags:
    """Every tag that was seen, and its document. A tag has one, for ever."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}

    def see(self, response: Response) -> Response:
        assert response.status == 200
        known = self.documents.setdefault(response.headers["etag"], response.body)
        assert known == response.body, "one tag, two documents"
        return response


async def past_and_future(found: Cluster, tags: Tags) -> None:
    """Two events before the backup, and four more after it, seen on both nodes."""
    one, two = found.nodes
    tags.see(await one.ask())
    for node, target in ((one, "web-0"), (two, "web-1")):
        id = await node.schedule(target, EventType.FREEZE)
        for response in await found.until_shown(id):
            tags.see(response)
    await found.backup.save()
    for node, target in ((one, "web-0"), (two, "web-1"), (one, "web-2"), (two, "web-3")):
        id = await node.schedule(target, EventType.REDEPLOY)
        for response in await found.until_shown(id):
            tags.see(response)


async def follows(node: ClusterNode, tags: Tags, events: int) -> Response:
    """The first document with so many events, none of whose tags was ever seen."""
    async with asyncio.timeout(HANG_S):
        while True:
            response = tags.see(await node.ask())
            if len(response.events) == events:
                return response
            await asyncio.sleep(0.01)


async def test_nodes_follow_a_restored_backup(postgres_dsn: str) -> None:
    tags = Tags()
    async with cluster(postgres_dsn) as found:
        await past_and_future(found, tags)
        before = set(tags.documents)
        await found.backup.restore()
        for node in found.nodes:
            response = await follows(node, tags, 2)
            assert response.headers["etag"] not in before
            assert response.incarnation == 1
        assert await found.nodes[0].tag() == await found.nodes[1].tag()
        assert [node.engine.step_backs for node in found.nodes] == [1, 1]
        history = await found.nodes[0].store.history(scope_id=found.web.id, limit=100)
        anew = [each for each in history if getattr(each.transition, "reason", "")]
        assert len(anew) == 1, "two nodes began anew together"


@pytest.mark.parametrize("which", [0, 1])
async def test_an_event_that_is_announced_right_behind_it_is_shown_on_every_node(
    postgres_dsn: str, which: int
) -> None:
    tags = Tags()
    async with cluster(postgres_dsn) as found:
        await past_and_future(found, tags)
        before = set(tags.documents)
        await found.backup.restore()
        id = await found.nodes[which].schedule("web-2")
        for response in await found.until_shown(id):
            assert tags.see(response).headers["etag"] not in before
            assert len(response.events) == 3
        assert await found.nodes[0].tag() == await found.nodes[1].tag()


async def test_numbers_of_the_journal_may_be_given_out_again(postgres_dsn: str) -> None:
    """As on a standby that takes over: what is new hides behind what was lost."""
    tags = Tags()
    async with cluster(postgres_dsn) as found:
        await past_and_future(found, tags)
        before = set(tags.documents)
        await found.backup.restore(lower_by=await found.backup.lost())
        for number, node in enumerate(found.nodes):
            id = await node.schedule(f"web-{number}")
            for response in await found.until_shown(id):
                assert tags.see(response).headers["etag"] not in before
        assert await found.nodes[0].tag() == await found.nodes[1].tag()


async def test_the_backup_may_be_restored_into_a_new_server(postgres_dsn: str) -> None:
    """Whose transaction numbers are lower than all that are in the journal."""
    tags = Tags()
    async with cluster(postgres_dsn) as found:
        await past_and_future(found, tags)
        before, ids = set(tags.documents), []
        await found.backup.restore(lower_by=1_000_000, cuts_off=True)
        for number, node in enumerate(found.nodes):
            id = await schedule_again(node, f"web-{number}")
            ids.append(id)
            for response in await found.until_shown(id):
                assert tags.see(response).headers["etag"] not in before
        assert await found.nodes[0].tag() == await found.nodes[1].tag()
        shown = await found.nodes[1].store.journal(scope_id=found.web.id, limit=1_000)
        revisions = [each.revision for each in shown]
        assert revisions == sorted(revisions), "the journal goes on behind its last entry"
        announced = [each.transition for each in shown if isinstance(each.transition, Scheduled)]
        assert [each.event_id for each in announced[-2:]] == ids


async def schedule_again(node: ClusterNode, target: str) -> EventId:
    """A connection that was cut off in the middle is an outage; whoever was told so asks again."""
    while True:
        try:
            return await node.schedule(target)
        except StoreDown:
            await asyncio.sleep(0.01)


async def test_who_waits_is_told(postgres_dsn: str) -> None:
    tags = Tags()
    async with cluster(postgres_dsn) as found:
        await past_and_future(found, tags)
        before = set(tags.documents)
        clients = [await node.connect() for node in found.nodes]
        for client, node in zip(clients, found.nodes, strict=True):
            headers = {"Metadata": "true", "If-None-Match": await node.tag()}
            await client.send(request(WAIT, headers=headers))
            view = node.engine.views._views[found.web.id]
            await found.until(lambda: bool(view.listeners))  # noqa: B023
        await found.backup.restore()
        for client in clients:
            response = tags.see(await client.receive())
            assert response.headers["etag"] not in before
            assert len(response.events) == 2
            await client.close()


async def test_an_address_of_the_lost_past_is_nobodys(postgres_dsn: str) -> None:
    async with cluster(postgres_dsn) as found:
        await found.nodes[0].ask()
        await found.backup.save()
        late = VirtualMachine(name="late", addresses=("127.0.7.7",), place=Place(test=True))
        await found.nodes[0].engine.declare([late], by=ME)
        for node in found.nodes:
            await found.until(lambda: node.engine.views.by_address("127.0.7.7") is not None)  # noqa: B023
            assert (await node.ask(source="127.0.7.7")).status == 200
        await found.backup.restore()
        for node in found.nodes:
            await found.until(lambda: node.engine.views.by_address("127.0.7.7") is None)  # noqa: B023
            assert (await node.ask(source="127.0.7.7")).status == 404
            assert (await node.ask()).status == 200


async def test_a_client_with_a_tag_of_the_lost_past_gets_what_is_stored(postgres_dsn: str) -> None:
    """Also at once, before a node has looked by itself."""
    tags = Tags()
    async with cluster(postgres_dsn) as found:
        await past_and_future(found, tags)
        newest = await found.nodes[0].tag()
        before = set(tags.documents)
        await found.backup.restore()
        id = await found.nodes[0].schedule("web-2")
        (shown, _) = await found.until_shown(id)
        assert shown.headers["etag"] not in before
        for node in found.nodes:
            response = tags.see(await node.ask(newest))
            assert response.shows(id)
            assert response.headers["etag"] not in before
