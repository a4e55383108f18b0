"""This module reads files that a user names. They may be too large, or not text."""

import errno
from pathlib import Path

FILE_MB_MAX = 64  # Far more than any of our files needs.


def read_bytes(path: str | Path) -> bytes:
    """Return the content of the file. Raises OSError with a `strerror` that gives the reason."""
    bytes_max = FILE_MB_MAX * 1024 * 1024
    try:
        with open(path, "rb") as file:
            # A device such as /dev/zero never ends.
            content = file.read(bytes_max + 1)
    except ValueError:  # The name holds a NUL.
        raise OSError(errno.EINVAL, "no file can have this name") from None
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it is larger than {FILE_MB_MAX} MB")
    return content


def read_text(path: str | Path) -> str:
    """Return the text of the file. Raises OSError as `read_bytes` does, or if it is not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "it is not UTF-8 text") from None
