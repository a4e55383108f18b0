"""How fast a handler may ask again when it is told that it asks too often."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from fairwarning.handler_check.all_cases import CASES
from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.fleet import instances
from fairwarning.handler_check.model import Verdict

EVENT = SimpleNamespace(id="11112222", phase="scheduled", resources=["web-0"])


@pytest.mark.parametrize(("after_s", "verdict"), [(0.1, Verdict.FAILED), (1.0, Verdict.PASSED)])
def test_who_is_throttled_does_not_ask_faster(after_s: float, verdict: Verdict) -> None:
    server: Any = SimpleNamespace(
        fault=lambda *_, **__: nullcontext(),
        clear_faults=lambda: None,
        schedule=lambda *_, **__: EVENT,
    )
    observed: Any = SimpleNamespace(
        wait_polls=lambda _: True,
        mark=lambda: 0,
        poll_pauses_s=lambda since=None, until=None: [1.0 if since is None else after_s] * 5,
        evidence=lambda *_, **__: (),
        polls=lambda: 5,
        wait=lambda *_, **__: True,
        patience_s=1,
    )
    run = CaseRun(server, instances("web-0"), observed, lambda: None, approves=True)
    CASES["throttled"].play(run)
    assert run.points[0].verdict is verdict
