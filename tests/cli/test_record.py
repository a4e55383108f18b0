"""The command `record`: what it refuses, and what it says at its end."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fairwarning.cli.main import main
from fairwarning.testing import Server

BEGIN = '{"kind":"begin"}\n'


def record(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["record", *arguments])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--for", "soon"], "--for: "),
        (["--endpoint", "https://10.0.0.1"], "--endpoint: "),
        (["--endpoint", "nowhere"], "--endpoint: "),
    ],
)
def test_what_cannot_be_is_bad_usage(arguments: list[str], why: str) -> None:
    result = record(*arguments)
    assert result.exit_code == 2
    assert why in result.stderr


def test_a_file_that_is_no_recording_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("mine")
    result = record("--output", str(file), "--endpoint", "http://127.0.0.1:9", "--for", "1s")
    assert result.exit_code == 1
    assert "is no recording; choose another name" in result.stderr
    assert file.read_text() == "mine"
    result = record("--output", str(tmp_path / "none" / "x"), "--endpoint", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "cannot be written: No such file" in result.stderr


def test_a_recording_goes_on_after_the_last_whole_line_and_is_counted(
    tmp_path: Path, fairwarning: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.cli.record._seconds", lambda _: 0.05)
    fairwarning.schedule("Reboot", "web-0")
    file = tmp_path / "recording"
    file.write_text(BEGIN + '{"kind":"doc')
    url = fairwarning.vm("web-0").url
    result = record("--endpoint", url, "--for", "1s", "--output", str(file), "--json")
    assert result.exit_code == 0, result.output
    first, *rest = file.read_text().splitlines(keepends=True)
    assert first == BEGIN
    kinds = [json.loads(each)["kind"] for each in rest]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert json.loads(result.stdout) == {
        "documents": kinds.count("document"),
        "outages": kinds.count("outage"),
        "output": str(file),
    }
