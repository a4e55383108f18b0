"""What several tests of the client ask for."""

import pytest

from fairwarning.client import polling


@pytest.fixture
def polls_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between polls are short, so that no test waits for real time."""
    for name in ("POLL_S", "ASK_AGAIN_S", "BACKOFF_S_MAX", "RETRY_AFTER_S_MAX"):
        monkeypatch.setattr(polling, name, 0.01)
