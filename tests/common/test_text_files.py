"""A file that a user names is read whole, or the reason is said."""

import errno
from pathlib import Path

import pytest

from fairwarning.common import text_files
from fairwarning.common.text_files import read_bytes, read_text


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "FILE_MB_MAX", 1)
    file = tmp_path / "file"
    file.write_bytes(b"a" * 1024 * 1024)
    assert len(read_bytes(file)) == 1024 * 1024
    file.write_bytes(b"a" * (1024 * 1024 + 1))
    with pytest.raises(OSError, match="larger than 1 MB") as caught:
        read_bytes(file)
    assert caught.value.errno == errno.EFBIG
    with pytest.raises(OSError, match="larger than 1 MB"):
        read_text("/dev/zero")


def test_what_is_no_text_or_no_name_has_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xef\xbb\xbfgr\xc3\xbcn")
    assert read_text(file) == "grün"
    file.write_bytes(b"gr\xfcn")
    with pytest.raises(OSError, match="not UTF-8") as caught:
        read_text(file)
    assert caught.value.strerror == "it is not UTF-8 text"
    with pytest.raises(OSError, match="no file can have this name"):
        read_bytes("a\0b")
