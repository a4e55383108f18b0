"""What is noted of requests: those of test fleets only."""

import json

import pytest

from fairwarning.engine.request_log import Requests
from fairwarning.metadata.request_watchers import (
    APPROVALS_MAX,
    ID_CHARS_MAX,
    ObservedRequest,
    record_requests,
)
from tests.metadata.rig import Rig


@pytest.mark.parametrize(("is_test", "count"), [(True, 1), (False, 0)])
async def test_of_a_real_fleet_no_request_is_kept(is_test: bool, count: int) -> None:
    rig, requests = Rig(test=is_test), Requests()
    await rig.start()
    assert rig.server is not None
    rig.server.watch(record_requests(requests))
    assert (await rig.ask()).status == 200
    assert requests.count == count
    await rig.stop()


async def test_an_approval_is_kept_with_the_first_of_its_ids(rig: Rig) -> None:
    requests = Requests()
    assert rig.server is not None
    rig.server.watch(record_requests(requests))
    ids = [f"{n:08X}-0000-0000-0000-000000000000" for n in range(APPROVALS_MAX + 1)]
    sent = [{"EventId": id} for id in [*ids[:-2], "x" * 70, ids[-1]]]
    for body in (json.dumps({"StartRequests": sent}).encode(), b"{", b'{"StartRequests":7}'):
        await rig.ask(method="POST", body=body)
    await rig.ask()
    kept = [(each.kind, each.events) for each in requests.list()]
    cut = (*ids[:-2], "x" * ID_CHARS_MAX)[:APPROVALS_MAX]
    assert sorted(kept) == [("approve", ()), ("approve", ()), ("approve", cut), ("events", ())]


async def test_who_stops_watching_hears_nothing_more(rig: Rig) -> None:
    heard: list[ObservedRequest] = []
    assert rig.server is not None
    watcher = heard.append
    rig.server.watch(watcher, hears_refused=True)
    await rig.ask(method="POST", headers={}, body=b"{}")
    await rig.ask(headers={"Metadata": "true", "User-Agent": "a" * 300})
    assert [(each.kind, bool(each.hint), len(each.user_agent)) for each in heard] == [
        ("approve", True, 0),
        ("events", False, 300),
    ]
    rig.server.unwatch(watcher)
    await rig.ask(method="POST", headers={}, body=b"{}")
    await rig.ask()
    assert len(heard) == 2
    with pytest.raises(ValueError, match="not in list"):
        rig.server.unwatch(watcher)
