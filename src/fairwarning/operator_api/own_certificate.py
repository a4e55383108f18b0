"""Makes and stores our own certificate for Azure's clients, which use only TLS.

Its authority is valid for years, so clients must be told to trust it only once. At a start, the
certificate is renewed if it expires soon or does not fit. Key and certificate are in one file,
which is replaced in one step, so no reader ever sees half of a pair. The first line of a file says
until when it is valid and for which names. So a start need not parse the certificate, which would
load a large library.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from fairwarning.operator_api.server import Tls

AUTHORITY_DAYS = 3_652  # Ten years, so that clients need to trust it only once.
CERTIFICATE_DAYS = 397
"""How long a certificate is valid. Some clients reject certificates that last longer."""
RENEWED_BEFORE = timedelta(days=30)
_NAMES = ("localhost", "127.0.0.1", "::1")
_BEGIN = "-----BEGIN CERTIFICATE-----"


class CannotCertify(Exception):
    """No certificate can be made. The message says what to do."""


class OwnCertificate(NamedTuple):
    tls: Tls
    authority: str
    """The authority that clients must trust, as PEM."""


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a stored file."""

    until: Annotated[datetime, msgspec.Meta(tz=True)]
    sha256: str
    """The hash of the rest of the file, so that a damaged file is not used."""
    names: list[str] = []
    authority: str = ""
    """The hash of the authority that signed this certificate; empty for an authority."""


class _Kept(NamedTuple):
    head: _Head
    pem: str


def own_certificate(folder: Path, host: str, now: datetime) -> OwnCertificate:
    """Return a certificate for the loopback address `host`, a new one if needed.

    Raises CannotCertify.
    """
    names = list(dict.fromkeys((*_NAMES, host)))
    try:
        authority = _authority(folder / "authority.pem")
        if authority is None or not _is_fit(folder, authority, names, now):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(folder):
                authority = _renew(folder, names, now)
    except OSError as problem:
        raise CannotCertify(
            f"a certificate cannot be kept in {folder} ({problem.strerror}); make that folder "
            "yours, or name another with --azure-folder"
        ) from problem
    path = folder / "server.pem"
    return OwnCertificate(Tls(path, path), authority.pem[authority.pem.index(_BEGIN) :])


def _renew(folder: Path, names: list[str], now: datetime) -> _Kept:
    """Make the files that are still missing or unfit, and return the authority.

    It checks them again under the lock, because another server may just have made them.
    """
    from fairwarning.operator_api import certificate_authority  # noqa: PLC0415  it loads a large library

    path = folder / "authority.pem"
    authority = _authority(path)
    if authority is None or not _lasts(authority, now):
        until = now + timedelta(days=AUTHORITY_DAYS)
        authority = _keep(path, certificate_authority.new_authority(now, until), until)
    if not _is_fit(folder, authority, names, now):
        until = min(now + timedelta(days=CERTIFICATE_DAYS), authority.head.until)
        try:
            made = certificate_authority.new_certificate(authority.pem, names, now, until)
        except ValueError:
            raise _damaged(path) from None
        _keep(folder / "server.pem", made, until, names, authority.head.sha256)
    return authority


def _is_fit(folder: Path, authority: _Kept, names: list[str], now: datetime) -> bool:
    kept = _read(folder / "server.pem")
    return (
        kept is not None
        and _lasts(authority, now)
        and _lasts(kept, now)
        and kept.head.authority == authority.head.sha256
        and set(names) <= set(kept.head.names)
    )


def _lasts(kept: _Kept, now: datetime) -> bool:
    return kept.head.until - now >= RENEWED_BEFORE


def _authority(path: Path) -> _Kept | None:
    """Return the authority, or None if there is no file.

    Raises CannotCertify if it is damaged, because clients would not trust a new one.
    """
    if not path.exists():
        return None
    kept = _read(path)
    if kept is None or _BEGIN not in kept.pem:
        raise _damaged(path)
    return kept


def _damaged(path: Path) -> CannotCertify:
    return CannotCertify(
        f"{path} is damaged; put it back, or remove it and run `fairwarning azure-setup` again "
        "for each client, because there will be a new authority to trust"
    )


def _read(path: Path) -> _Kept | None:
    """Return the file's contents, or None if there is no usable file."""
    try:
        first, _, pem = path.read_text(encoding="ascii").partition("\n")
        head = msgspec.json.decode(first.encode(), type=_Head)
    except (FileNotFoundError, UnicodeDecodeError, msgspec.DecodeError):
        return None
    return _Kept(head, pem) if _hash(pem) == head.sha256 else None


def _keep(
    path: Path, pem: str, until: datetime, names: list[str] | None = None, authority: str = ""
) -> _Kept:
    head = _Head(until=until, sha256=_hash(pem), names=names or [], authority=authority)
    text = msgspec.json.encode(head) + b"\n" + pem.encode()
    # mkstemp makes a file that only its owner can read, from the beginning.
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return _Kept(head, pem)


def _hash(pem: str) -> str:
    return hashlib.sha256(pem.encode()).hexdigest()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that only one of several starting servers makes files."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
