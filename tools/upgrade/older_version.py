"""Gets the version before the newest migration from the repository's own history."""

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = "src/fairwarning/stores/sql/postgres"


class NoHistory(Exception):
    """The history that is needed is not there. The message says what is missing."""


def newest_in(root: Path) -> int:
    """Returns the number of the newest migration of a working tree."""
    return _newest(path.name for path in (root / MIGRATIONS).iterdir())


def commit_before_newest(root: Path = ROOT) -> str:
    """Returns the last commit that did not have the newest migration. Raises NoHistory."""
    newest = newest_in(root)
    if not (root / ".git").exists():
        raise NoHistory(
            f"{root} is no clone of the repository: there is no .git in it; run this in a clone"
        )
    changed = _lines(root, "log", "--format=%H", "--", MIGRATIONS)
    # The newest commits first. The last of those that have the migration has brought it.
    having = [commit for commit in changed if _newest_of(root, commit) >= newest]
    if not having:
        return "HEAD"  # The migration is in the working tree, and not committed yet.
    (parents,) = _lines(root, "log", "-1", "--format=%P", having[-1])
    for parent in parents.split():
        if _has(root, parent) and _newest_of(root, parent) < newest:
            return parent
    raise NoHistory(
        f"the history ends before migration {newest} was added, at commit {having[-1]}; get the "
        "rest with: git fetch --unshallow"
    )


def extract(commit: str, target: Path, root: Path = ROOT) -> Path:
    """Writes the program of a commit into `target`, and returns the folder of its package."""
    archive = _git(root, "archive", commit, "src")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(target, filter="data")
    return target / "src"


def _newest_of(root: Path, commit: str) -> int:
    listed = _lines(root, "ls-tree", "--name-only", commit, f"{MIGRATIONS}/")
    return _newest(Path(line).name for line in listed)


def _newest(names: Iterable[str]) -> int:
    return max((int(name[:4]) for name in names if re.match(r"\d{4}_", name)), default=0)


def _has(root: Path, commit: str) -> bool:
    try:
        _git(root, "cat-file", "-e", commit)
    except NoHistory:
        return False
    return True


def _lines(root: Path, *words: str) -> list[str]:
    return _git(root, *words).decode().splitlines()


def _git(root: Path, *words: str) -> bytes:
    """Returns what git prints. Raises NoHistory if it fails."""
    git = shutil.which("git")
    if git is None:
        raise NoHistory("the program git is missing; install it")
    done = subprocess.run([git, *words], cwd=root, check=False, capture_output=True)  # noqa: S603
    if done.returncode:
        raise NoHistory(f"git {words[0]} failed: {done.stderr.decode().strip()}")
    return done.stdout
