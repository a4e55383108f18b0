"""What backups of all stores share: their errors, their summary, and writing a file as a whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


class BadBackup(Exception):
    """A backup cannot be made, read or restored. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in a backup."""

    store: str
    """The kind of store that it is of: `sqlite` or `postgresql`."""
    schema: int
    scopes: int
    events: int
    journal: int
    records: int
    warning: str = ""
    """What may be wrong with it. It is empty if all is well."""


@contextmanager
def whole_file(path: Path, *, replaces: bool) -> Iterator[Path]:
    """Yield the name of a temporary file, which becomes `path` if the block succeeds.

    Raises BadBackup if `path` exists and may not be replaced, or cannot be written.
    """
    if path.exists() and not replaces:
        raise BadBackup(f"{path} exists; choose another name, or say --force to replace it")
    temporary = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            temporary.unlink()
        # A store holds signing keys, so its backup is for this user only.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except OSError as problem:
        raise BadBackup(f"{path} cannot be written: {problem.strerror or problem}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def refuse_schema(what: str, version: int, newest: int) -> None:
    """Raise BadBackup if this version of fairwarning cannot read the schema."""
    if version > newest:
        raise BadBackup(
            f"{what} has schema version {version}, and this version of fairwarning knows up to "
            f"{newest}; use the version that made it, or a newer one"
        )
    if version < 1:
        raise BadBackup(f"{what} is no store of fairwarning; name another file")
