"""The check of the agent installs Debian packages without starting their services."""

from pathlib import Path

from tools.agent.packages import services_kept_off


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
