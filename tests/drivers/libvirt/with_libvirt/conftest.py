"""A libvirtd with libvirt's test driver: domains in memory that several processes share."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost
from tests.support.patience import HANG_S

CONFIG = """
unix_sock_dir = "{folder}"
unix_sock_rw_perms = "0777"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_outputs = "3:stderr"
"""


@pytest.fixture(scope="session")
def libvirtd() -> Iterator[str]:
    with test_driver() as uri:
        yield uri


@contextmanager
def test_driver() -> Iterator[str]:
    """The URI of the test driver of a libvirtd that runs for these tests, never as root."""
    folder = Path(tempfile.mkdtemp(prefix="fairwarning-libvirt-"))
    (folder / "libvirtd.conf").write_text(CONFIG.format(folder=folder))
    plain: dict[str, object] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")
        plain = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    program = shutil.which("libvirtd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "libvirtd is missing; ./test libvirt says what to install"
    process = subprocess.Popen(
        [program, "--config", folder / "libvirtd.conf", "--pid-file", folder / "pid"],
        env={**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)},
        stderr=subprocess.DEVNULL,
        **plain,  # type: ignore[call-overload]
    )
    socket = folder / "libvirt-sock"
    try:
        ends = time.monotonic() + HANG_S
        while not socket.exists():
            assert process.poll() is None, "libvirtd ended"
            assert time.monotonic() < ends
            time.sleep(0.05)
        yield f"test+unix:///default?socket={socket}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


@pytest.fixture
async def host(libvirtd: str) -> AsyncIterator[LibvirtHost]:
    """A connection that stays open, because the test driver forgets all with its last one."""
    made = LibvirtHost(libvirtd, HANG_S)
    yield made
    await made.call(lambda connection: connection.close())
