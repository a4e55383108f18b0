"""Nothing here waits for real time: pauses between polls are short, deadlines are virtual."""

import pytest

from fairwarning.client import polling


@pytest.fixture(autouse=True)
def polls_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "POLL_S", 0.01)
    monkeypatch.setattr(polling, "BACKOFF_S_MAX", 0.02)
