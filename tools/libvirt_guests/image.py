"""Makes what a guest boots: Debian's kernel, and a RAM disk with busybox, Python, our agent and
QEMU's guest agent. The packages are unpacked only, never installed.
"""

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tools.debian_packages import SYSTEM_PATH, program

_ROOT = Path(__file__).resolve().parents[2]
_GUEST = Path(__file__).resolve().parent / "guest"
_KERNEL = "linux-image-cloud-amd64"
"""It has no files; it depends on the package of the newest kernel."""
_PACKAGES = (
    "libblkid1",
    "libc6",
    "libexpat1",
    "libffi8",
    "libglib2.0-0",
    "libmount1",
    "libnuma1",
    "libpcre2-8-0",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libselinux1",
    "libssl3",
    "libudev1",
    "liburing2",
    "python3.11-minimal",
    "qemu-guest-agent",
    "zlib1g",
)
_MODULES = (
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio_blk",
    "virtio_console",
    "button",
    "evdev",
)
_OURS = ("__init__.py", "common", "client", "agent")
"""What packages/client has of our sources."""
_UNUSED = ("usr/share", "usr/lib/x86_64-linux-gnu/gconv", "lib/x86_64-linux-gnu/gconv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    kernel: Path
    ramdisk: Path

    @classmethod
    def made_in(cls, folder: Path) -> Self:
        return cls(kernel=folder / "vmlinuz", ramdisk=folder / "ramdisk")


def make_image(folder: Path) -> None:
    """Makes it in the folder. It needs root, for the guest's own Python compiles the files."""
    _download(folder)
    kernel_files, tree = folder / "kernel", folder / "tree"
    for package in folder.glob("*.deb"):
        is_kernel = package.name.startswith("linux-image-")
        _run(["dpkg", "-x", str(package), str(kernel_files if is_kernel else tree)])
        package.unlink()
    (kernel,) = (kernel_files / "boot").glob("vmlinuz-*")
    shutil.move(kernel, folder / "vmlinuz")
    for unused in _UNUSED:
        shutil.rmtree(tree / unused, ignore_errors=True)
    _add_modules(kernel_files, tree)
    shutil.rmtree(kernel_files)
    _add_files(tree)
    _run([program("chroot"), str(tree), "python3.11", "-m", "compileall", "-q", "/usr/lib"])
    _pack(tree, folder / "ramdisk")
    shutil.rmtree(tree)


def _download(folder: Path) -> None:
    depends = _run(["apt-cache", "depends", "--important", _KERNEL])
    kernels = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image" in line]
    assert kernels, f"Debian's archive has no {_KERNEL}; run apt-get update"
    _run(["apt-get", "download", "--quiet", kernels[0], *_PACKAGES], cwd=folder)


def _add_modules(kernel_files: Path, tree: Path) -> None:
    (tree / "modules").mkdir()
    found = {each.stem: each for each in (kernel_files / "lib/modules").rglob("*.ko")}
    for name in _MODULES:
        shutil.copy(found[name], tree / "modules")


def _add_files(tree: Path) -> None:
    for folder in ("bin", "sbin", "proc", "sys", "dev", "etc/acpi/PWRF", "usr/bin", "usr/sbin"):
        (tree / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(program("busybox"), tree / "bin/busybox")
    _run([program("chroot"), str(tree), "/bin/busybox", "--install", "-s", "/bin"])
    for name, place in (
        ("init", "init"),
        ("shutdown", "sbin/shutdown"),
        ("poweroff-button", "etc/acpi/PWRF/00000080"),
    ):
        shutil.copy(_GUEST / name, tree / place)
        (tree / place).chmod(0o755)
    shutil.copy(_GUEST / "agent.toml", tree / "etc/agent.toml")
    python = tree / "usr/lib/python3.11"
    ignore = shutil.ignore_patterns("__pycache__")
    for name in _OURS:
        source = _ROOT / "src/fairwarning" / name
        target = python / "fairwarning" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignore)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for module in ("click", "h11"):
        found = importlib.util.find_spec(module)
        assert found is not None, f"the environment lacks {module}"
        assert found.origin is not None
        shutil.copytree(Path(found.origin).parent, python / module, ignore=ignore)


def _pack(tree: Path, ramdisk: Path) -> None:
    names = "\0".join(str(each.relative_to(tree)) for each in sorted(tree.rglob("*")))
    with ramdisk.open("wb") as file:
        subprocess.run(  # noqa: S603
            [program("cpio"), "--create", "--null", "--format=newc", "--quiet", "--owner=0:0"],
            cwd=tree,
            input=names.encode(),
            stdout=file,
            check=True,
        )


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(  # noqa: S603
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": SYSTEM_PATH, "LC_ALL": "C"},
    )
    assert done.returncode == 0, f"{' '.join(command[:3])}: {done.stderr.strip()}"
    return done.stdout
