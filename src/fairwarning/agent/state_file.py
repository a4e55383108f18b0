"""Stores the agent's memory in a file. The file is always complete, and only one agent uses it."""

import contextlib
import fcntl
import json
import os
import time
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fairwarning.agent.records import Memory
from fairwarning.common.text_files import read_bytes

FORM = 2
"""The version of the file's format. Increase it for a change that older agents read wrongly."""


LOCK_TRIES = 5
LOCK_PAUSE_S = 0.02


class StateProblem(Exception):
    """The state cannot be read or written. The message says what is wrong."""


class StateFile:
    """The state file. It is locked from `open` to `close`, so that two agents cannot share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._written: Memory | None = None

    def open(self) -> Memory:
        """Lock the file and return its memory, which is empty if there is no file yet.

        Raises StateProblem if another agent has the lock, or if the file cannot be used.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(beside(self.path, ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
            _lock(self._lock)
        except BlockingIOError:
            self.close()
            raise StateProblem(
                f"another agent uses {self.path}; stop it, or give this one another `state`"
            ) from None
        except OSError as problem:
            raise StateProblem(
                f"{self.path.parent} cannot be used for the state: {problem.strerror}; make it "
                "writable for this user, or set `state` in the config"
            ) from None
        try:
            self._written = read_state(self.path)
        except StateProblem:
            self.close()
            raise
        return self._written

    def save(self, memory: Memory) -> None:
        """Write the memory. It is on disk when this returns. Raises StateProblem if that fails."""
        if memory == self._written:
            return
        content = json.dumps({"form": FORM, "memory": encode(memory)}, separators=(",", ":"))
        try:
            replace_file(self.path, content.encode())
        except OSError as problem:
            raise StateProblem(f"{self.path} cannot be written: {problem.strerror}") from None
        self._written = memory

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock(file: int) -> None:
    """Lock the file. Raises BlockingIOError if another agent has the lock.

    `agent status` holds the lock for a moment to see whether an agent runs, so one try is too few.
    """
    for _ in range(LOCK_TRIES - 1):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)
        else:
            return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class NoStateFile:
    """The state of a dry run, which is never written."""

    def open(self) -> Memory:
        return Memory()

    def save(self, memory: Memory) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def read_state(path: Path) -> Memory:
    """Return the memory in a state file, or an empty one if there is no file.

    No lock is needed, because the file is only replaced as a whole. Raises StateProblem if the file
    cannot be read, is damaged, or has the format of another version.
    """
    try:
        raw: Any = json.loads(read_bytes(path))
    except FileNotFoundError:
        return Memory()
    except OSError as problem:
        raise StateProblem(f"{path} cannot be read: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise StateProblem(_begin_anew(path, "is damaged")) from None
    form = raw.get("form") if isinstance(raw, dict) else None
    if isinstance(form, int) and form > FORM:
        raise StateProblem(
            f"{path} was written by a newer agent (form {form}; this one knows {FORM}); run that "
            "one, or move the file away to begin anew"
        )
    if isinstance(form, int) and form < FORM:
        raise StateProblem(_begin_anew(path, "was written by an older agent"))
    try:
        return decode(Memory, raw["memory"])
    except (Unreadable, KeyError, TypeError):
        raise StateProblem(_begin_anew(path, "is no state of an agent")) from None


def _begin_anew(path: Path, what: str) -> str:
    return (
        f"{path} {what}; undo by hand what may still be drained, and move the file away to begin "
        "anew"
    )


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def replace_file(path: Path, content: bytes, *, is_forced: bool = True) -> None:
    """Replace a file as a whole. With `is_forced`, it is on disk on return. Raises OSError."""
    temporary = beside(path, ".new")
    with open(temporary, "wb", opener=_private) as file:
        file.write(content)
        if is_forced:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if is_forced:
        _force_folder(path.parent)


def _force_folder(path: Path) -> None:
    # Without this, the new file name could be lost in a power failure.
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(folder)
    finally:
        os.close(folder)


def _private(name: str, flags: int) -> int:
    """Create and open a file that only this user can read, because actions may contain secrets.

    An old file of this name is removed first, because another process may have it open.
    """
    try:
        return os.open(name, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        os.unlink(name)
        return os.open(name, flags | os.O_EXCL, 0o600)


T = TypeVar("T")
KIND = "kind"
"""The JSON key with the name of the dataclass. A union of several dataclasses needs it."""


class Unreadable(ValueError):
    """The JSON does not fit the type."""


def encode(value: Any) -> Any:
    """Return a frozen dataclass as a value that `json.dumps` can write."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = {each.name: encode(getattr(value, each.name)) for each in fields(value)}
        return {KIND: type(value).__name__, **shown}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): encode(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return [encode(each) for each in value]
    return value


def decode(type_: type[T], raw: Any) -> T:
    """Return the dataclass of this type that `encode` made JSON from. Raises Unreadable."""
    try:
        found: T = _decode(type_, raw)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise Unreadable(f"no {type_.__name__}: {problem!r}") from None
    return found


def _decode(wanted: Any, raw: Any) -> Any:
    origin = get_origin(wanted)
    if wanted is Any:
        return raw
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(wanted), raw)
    if origin is tuple:
        return _decode_tuple(get_args(wanted), raw)
    if origin is frozenset:
        return frozenset(_decode(get_args(wanted)[0], each) for each in raw)
    if origin is not None and issubclass(origin, Mapping):
        _, of = get_args(wanted)
        return {key: _decode(of, each) for key, each in raw.items()}
    if is_dataclass(wanted):
        return _decode_fields(wanted, raw)
    if wanted is datetime:
        return datetime.fromisoformat(raw)
    if issubclass(wanted, StrEnum):
        return wanted(raw)
    return _plain(wanted, raw)


def _plain(wanted: Any, raw: Any) -> Any:
    if wanted is float and isinstance(raw, int) and not isinstance(raw, bool):
        return float(raw)
    if type(raw) is not wanted:
        raise Unreadable(f"{raw!r} is no {wanted.__name__}")
    return raw


def _decode_union(choices: tuple[Any, ...], raw: Any) -> Any:
    if raw is None and types.NoneType in choices:
        return None
    rest = [each for each in choices if each is not types.NoneType]
    if len(rest) == 1:
        return _decode(rest[0], raw)
    chosen = next((each for each in rest if each.__name__ == raw[KIND]), None)
    if chosen is None:
        raise Unreadable(f"{raw[KIND]!r} is unknown")
    return _decode(chosen, raw)


def _decode_tuple(of: tuple[Any, ...], raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise Unreadable(f"{raw!r} is no list")
    if of[-1] is ...:
        return tuple(_decode(of[0], each) for each in raw)
    return tuple(_decode(type_, each) for type_, each in zip(of, raw, strict=True))


def _decode_fields(wanted: Any, raw: Any) -> Any:
    hints = _hints(wanted)
    return wanted(**{name: _decode(hints[name], raw[name]) for name in hints if name in raw})


@cache
def _hints(type_: Any) -> dict[str, Any]:
    names = {each.name for each in fields(type_) if each.init}
    return {name: hint for name, hint in get_type_hints(type_).items() if name in names}
