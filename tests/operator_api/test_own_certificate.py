"""Our own authority: trusted once, kept for years, and good for this machine only."""

import errno
import os
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest

from fairwarning.operator_api import certificate_authority
from fairwarning.operator_api.own_certificate import (
    AUTHORITY_DAYS,
    CERTIFICATE_DAYS,
    RENEWED_BEFORE,
    CannotCertify,
    OwnCertificate,
    own_certificate,
)
from fairwarning.operator_api.server import Tls
from tests.support.patience import HANG_S

NOW = datetime.now(UTC)
HOST = "127.0.0.1"
STRICT = ssl.VERIFY_X509_STRICT


def shake_hands(own: OwnCertificate, name: str) -> None:
    """As a strict client that trusts our authority alone. Raises ssl.SSLError."""
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(own.tls.certificate, own.tls.key)
    there = ssl.create_default_context(cadata=own.authority)
    there.verify_flags |= STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = here.wrap_bio(to_server, to_client, server_side=True)
    client = there.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() is not None


def kept(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "authority.pem").read_bytes(), (folder / "server.pem").read_bytes()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_who_trusts_the_authority_can_connect_by_every_local_name(
    tmp_path: Path, name: str
) -> None:
    shake_hands(own_certificate(tmp_path / "tls", HOST, NOW), name)


def test_an_unusual_loopback_address_gets_a_certificate_that_fits_the_usual_ones_too(
    tmp_path: Path,
) -> None:
    before = own_certificate(tmp_path, HOST, NOW)
    own = own_certificate(tmp_path, "127.9.9.9", NOW)
    assert own.authority == before.authority
    for name in ("127.9.9.9", "127.0.0.1", "localhost"):
        shake_hands(own, name)
    files = kept(tmp_path)
    own_certificate(tmp_path, HOST, NOW)
    assert kept(tmp_path) == files


def test_the_authority_vouches_for_nobody_else(tmp_path: Path) -> None:
    own = own_certificate(tmp_path, HOST, NOW)
    authority = (tmp_path / "authority.pem").read_text()
    for name in ("login.example", "192.0.2.1"):
        stolen = tmp_path / "stolen.pem"
        stolen.write_text(
            certificate_authority.new_certificate(authority, [name], NOW, NOW + timedelta(days=9))
        )
        with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree"):
            shake_hands(OwnCertificate(Tls(stolen, stolen), own.authority), name)


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "tls"
    own_certificate(folder, HOST, NOW)
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("authority.pem", "server.pem"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert not list(folder.glob(".*"))


def test_the_certificate_is_renewed_before_it_ends_and_the_authority_stays(tmp_path: Path) -> None:
    own = own_certificate(tmp_path, HOST, NOW)
    files = kept(tmp_path)
    last = NOW + timedelta(days=CERTIFICATE_DAYS) - RENEWED_BEFORE
    assert own_certificate(tmp_path, HOST, last).authority == own.authority
    assert kept(tmp_path) == files
    renewed = own_certificate(tmp_path, HOST, last + timedelta(seconds=1))
    assert renewed.authority == own.authority
    assert kept(tmp_path)[0] == files[0]
    assert kept(tmp_path)[1] != files[1]


def test_an_authority_that_ends_is_replaced_with_all_that_it_signed(tmp_path: Path) -> None:
    old = own_certificate(tmp_path, HOST, NOW - timedelta(days=AUTHORITY_DAYS))
    new = own_certificate(tmp_path, HOST, NOW)
    assert new.authority != old.authority
    shake_hands(new, HOST)


def test_after_an_authority_was_removed_nothing_of_it_is_used(tmp_path: Path) -> None:
    old = own_certificate(tmp_path, HOST, NOW)
    (tmp_path / "authority.pem").unlink()
    new = own_certificate(tmp_path, HOST, NOW)
    assert new.authority != old.authority
    shake_hands(new, HOST)


def test_servers_that_start_at_once_use_one_authority_and_whole_files(tmp_path: Path) -> None:
    count = 8
    barrier = Barrier(count)

    def start(number: int) -> OwnCertificate:
        barrier.wait()
        own = own_certificate(tmp_path, f"127.0.0.{1 + number % 2}", NOW)
        shake_hands(own, "127.0.0.1")
        return own

    with ThreadPoolExecutor(count) as threads:
        found = list(threads.map(start, range(count)))
    assert len({own.authority for own in found}) == 1
    shake_hands(found[0], "localhost")


@pytest.mark.parametrize("bytes_kept", [0, 10, 300, -1])
def test_a_certificate_that_was_cut_off_is_made_anew(tmp_path: Path, bytes_kept: int) -> None:
    own_certificate(tmp_path, HOST, NOW)
    path = tmp_path / "server.pem"
    path.write_bytes(path.read_bytes()[:bytes_kept])
    shake_hands(own_certificate(tmp_path, HOST, NOW), HOST)


@pytest.mark.parametrize("bytes_kept", [0, 10, 300, -1])
def test_an_authority_that_was_cut_off_is_not_replaced_in_silence(
    tmp_path: Path, bytes_kept: int
) -> None:
    own_certificate(tmp_path, HOST, NOW)
    path = tmp_path / "authority.pem"
    path.write_bytes(path.read_bytes()[:bytes_kept])
    with pytest.raises(CannotCertify, match="azure-setup"):
        own_certificate(tmp_path, HOST, NOW)


def test_a_key_that_could_not_be_kept_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotCertify):
        own_certificate(tmp_path, HOST, NOW)
    monkeypatch.undo()
    assert not [each.name for each in tmp_path.iterdir() if b"KEY" in each.read_bytes()]


def test_a_folder_that_cannot_be_had_is_told_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotCertify, match="--azure-folder"):
        own_certificate(tmp_path / "file" / "tls", HOST, NOW)


def test_a_later_start_loads_no_large_library(tmp_path: Path) -> None:
    own_certificate(tmp_path, HOST, NOW)
    code = (
        "import sys\nfrom datetime import UTC, datetime\nfrom pathlib import Path\n"
        "from fairwarning.node import Node\n"
        "from fairwarning.operator_api.own_certificate import own_certificate\n"
        f"own_certificate(Path({str(tmp_path)!r}), {HOST!r}, datetime.now(UTC))\n"
        "print('cryptography' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stdout == "False\n"
