"""What a server's log and its end tell."""

import pytest

from fairwarning.live_check.nodes import is_error


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"level": "info", "message": "a"}', False),
        (b'{"level": "warning", "message": "a"}', False),
        (b'{"level": "error", "message": "a request broke"}', True),
        (b'{"level": "critical", "message": "a"}', True),
        (b'{"level": "error", "message": "timeout graceful shutdown exceeded"}', False),
        (b"Traceback (most recent call last):", True),
        (b'{"level": "error", "mess{"level": "info"}', False),
    ],
)
def test_a_line_of_a_log_that_tells_of_a_bug(line: bytes, expected: bool) -> None:
    assert is_error(line) is expected
