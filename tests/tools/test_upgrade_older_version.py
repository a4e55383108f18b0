"""The version before the newest migration is found in the history, or what is missing is said."""

import subprocess
from pathlib import Path

import pytest

from tools.upgrade.older_version import MIGRATIONS, NoHistory, commit_before_newest, extract

NAME = ("-c", "user.name=n", "-c", "user.email=n@example.com", "-c", "commit.gpgsign=false")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *NAME, *words], cwd=root, check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(root: Path, name: str) -> str:
    """Adds a file, and returns the commit that did it."""
    path = root / MIGRATIONS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)
    git(root, "add", "-A")
    git(root, "commit", "-m", f"Add {name}")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "origin"
    root.mkdir()
    git(root, "init", "--quiet")
    commit(root, "0001_initial.sql")
    commit(root, "queries.sql")
    return root


def test_it_is_the_commit_before_the_one_that_added_the_migration(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, "0002_more.sql")
    before = commit(repository, "README")
    commit(repository, "0003_newest.sql")
    commit(repository, "other")
    assert commit_before_newest(repository) == before
    found = extract(before, tmp_path / "old", repository)
    names = {path.name for path in (found.parent / MIGRATIONS).iterdir()}
    assert names == {"0001_initial.sql", "0002_more.sql", "queries.sql", "README"}


def test_a_migration_that_came_with_a_merge_is_found(repository: Path) -> None:
    main = git(repository, "branch", "--show-current")
    git(repository, "checkout", "--quiet", "-b", "side")
    before = git(repository, "rev-parse", "HEAD")
    commit(repository, "0002_newest.sql")
    git(repository, "checkout", "--quiet", main)
    commit(repository, "other")
    git(repository, "merge", "--quiet", "--no-edit", "side")
    assert commit_before_newest(repository) == before


def test_a_migration_that_is_not_committed_yet_is_newer_than_the_last_commit(
    repository: Path,
) -> None:
    (repository / MIGRATIONS / "0002_draft.sql").touch()
    assert commit_before_newest(repository) == "HEAD"


def test_a_history_that_was_cut_off_is_named(repository: Path, tmp_path: Path) -> None:
    commit(repository, "0002_newest.sql")
    commit(repository, "other")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", str(clone))
    with pytest.raises(NoHistory, match=r"the history ends before migration 2 .*--unshallow"):
        commit_before_newest(clone)


def test_a_folder_without_a_history_is_named(tmp_path: Path) -> None:
    (tmp_path / MIGRATIONS).mkdir(parents=True)
    with pytest.raises(NoHistory, match="is no clone of the repository"):
        commit_before_newest(tmp_path)
