"""Files of other programs, changed so that they are read whole: as before or as after."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def read_text(path: str) -> str:
    """Bytes that are no UTF-8 survive being written back."""
    return Path(path).read_bytes().decode(errors="surrogateescape")


def replace_text(path: str, text: str) -> None:
    """Keeps mode and owner. Raises OSError."""
    folder = os.path.dirname(path)
    status = os.stat(path)
    # The dot keeps it out of `include folder/*`.
    number, temporary = tempfile.mkstemp(prefix=".fairwarning-", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(number, status.st_mode & 0o7777)
            with suppress(PermissionError):
                os.fchown(number, status.st_uid, status.st_gid)
            file.write(text.encode(errors="surrogateescape"))
            file.flush()
            os.fsync(number)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
