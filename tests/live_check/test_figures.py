"""The figures of a run say what happened to each request."""

from msgspec.structs import replace

from fairwarning.live_check.figures import Figures
from fairwarning.live_check.records import Records
from tests.live_check.round_builder import good_round


def test_a_request_is_done_or_refused_or_nobody_knows() -> None:
    request = good_round().records.requests[0]
    statuses = (200, 202, 400, 409, 500, 503, None)
    figures = Figures()
    figures.add(Records([replace(request, status=each) for each in statuses]), [], 1.0)
    assert figures.to_json()["operations"] == {
        request.what: {"done": 2, "refused": 2, "unknown": 3}
    }
