"""Suites say what they lack, and install Debian packages without starting their services."""

from pathlib import Path

from tools.debian_packages import Needs, services_kept_off


def test_services_are_kept_off_only_while_packages_are_installed(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with services_kept_off(policy):
        assert policy.read_text().endswith("exit 101\n")
        assert policy.stat().st_mode & 0o777 == 0o755
    assert not policy.exists()


def test_a_policy_that_is_there_stays(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("theirs")
    with services_kept_off(policy):
        assert policy.read_text() == "theirs"
    assert policy.read_text() == "theirs"


def test_what_is_missing_is_told_with_the_command_that_installs_it() -> None:
    needs = Needs(
        programs={"sh": "dash", "no-such-a": "b c", "no-such-b": "a"}, modules=("sys", "no_such")
    )
    assert needs.missing() == [
        "missing: no-such-a, no-such-b; run: apt-get install --yes --no-install-recommends a b c",
        "missing: no_such; run: pip install 'fairwarning[test]'",
    ]


def test_a_suite_with_all_it_needs_misses_nothing() -> None:
    assert Needs(programs={"sh": "dash"}, modules=("sys",)).missing() == []
