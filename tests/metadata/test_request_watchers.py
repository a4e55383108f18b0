"""What is noted of requests: those of test fleets only."""

import pytest

from fairwarning.engine.request_log import Requests
from fairwarning.metadata.request_watchers import record_requests
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
