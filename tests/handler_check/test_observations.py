"""The log of a handler is read as people write it."""

from pathlib import Path

from fairwarning.handler_check.observations import HandlerLog


def test_the_log_is_read_whatever_the_case_and_whatever_else_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = HandlerLog(path)
    assert (log.is_written, log.count("drain", "AB-1")) == (False, 0)
    path.write_bytes(b"drain ab-1\nDrain AB-1 at noon\n\nundo\n\xff\xfe AB-1\nundo AB-12\n")
    assert log.is_written
    assert log.count("drain", "Ab-1") == 2
    assert log.count("undo", "AB-1") == 0
    assert log.count("undo", "AB-12") == 1
