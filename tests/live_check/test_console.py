"""What a run shows while it goes on."""

from types import SimpleNamespace
from typing import Any

import pytest

from fairwarning.live_check import console
from tests.live_check.round_builder import good_round


async def test_progress_says_how_long_the_load_has_lasted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter([1_000.0, 1_007.0])
    monkeypatch.setattr(console, "_PROGRESS_S", 0)
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    run: Any = SimpleNamespace(records=good_round().records)
    with pytest.raises((RuntimeError, StopIteration)):
        await console._show_progress(run)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("7 s: ")
