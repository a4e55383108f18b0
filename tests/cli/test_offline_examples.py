"""The examples of `serve`, `check` and `azure-setup` work too, as programs of their own.

They are run as they are written, but for what a test must not have: fixed ports, other people's
data, a network, the 730 MB of az, and forty-nine cases where one shows that a command works.
"""

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.cli.conftest import Program
from tests.cli.test_azure_setup import AZ, FakeAz
from tests.cli.test_examples import FLEET, examples
from tests.cli.test_serve import PROGRAM
from tests.handler_check.expected_failures import VARIANTS
from tests.support.patience import HANG_S
from tests.support.processes import Served, clean_environment, running, serving

HANDLER = f"""\
#!{sys.executable}
import runpy, sys
sys.argv = [{str(VARIANTS)!r}, "none"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def of(command: str) -> list[str]:
    found = [each for each in examples() if each.split()[0] == command]
    assert found
    return found


def own_environment(folder: Path) -> dict[str, str]:
    """Return an environment with an empty home, in which our own Python is `python3`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "PATH": path}
    return {**clean_environment(), **home}


@pytest.mark.parametrize("example", of("serve"))
def test_every_example_of_serve_becomes_ready_and_stops(
    example: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "fleet.toml").write_text(FLEET)
    if "postgresql://fw@db/fairwarning" in example:
        parts = conninfo_to_dict(request.getfixturevalue("postgres_dsn"))
        store = f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"
        example = example.replace("postgresql://fw@db/fairwarning", store)
    words = shlex.split(example.replace("169.254.169.254:80", "127.0.0.1:0"))
    for listener in ("--metadata", "--control", "--azure"):
        if listener not in words:
            words += [listener, "127.0.0.1:0"]
    with running(
        [*PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=own_environment(tmp_path),
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        is_ready = any("ready" in line.split() or '"ready"' in line for line in lines)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=HANG_S)
    assert is_ready, told
    assert process.returncode == 0, told
    assert "Traceback" not in told


@pytest.mark.parametrize("example", of("check"))
def test_every_example_of_check_works(example: str, tmp_path: Path) -> None:
    for name in ("handler", "my_handler.py"):
        (tmp_path / name).write_text(HANDLER)
        (tmp_path / name).chmod(0o755)
    words = shlex.split(example)
    if "--list" not in words and "--case" not in words:
        words[1:1] = ["--case", "own-event"]
    if "--list" not in words and "--patience" not in words:
        words[1:1] = ["--patience", f"{HANG_S:.0f}s"]
    done = subprocess.run(
        [*PROGRAM, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        cwd=tmp_path,
        env=own_environment(tmp_path),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "--list" not in words:
        assert "1 passed" in done.stdout or "2 passed" in done.stdout
    for option in ("--junit", "--html", "--badge"):
        if option in words:
            assert (tmp_path / words[words.index(option) + 1]).stat().st_size


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving("--azure", "127.0.0.1:0") as found:
        yield found


@pytest.mark.parametrize("example", of("azure-setup"))
def test_every_example_of_azure_setup_works(example: str, server: Served, tmp_path: Path) -> None:
    azure = tmp_path / ".azure"
    azure.mkdir()
    az = FakeAz(azure)
    az.has("AzureCloud")
    az.fails_at("")
    script = tmp_path / "bin/az"
    script.parent.mkdir()
    script.write_text(AZ.format(python=sys.executable))
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    around = {
        **own_environment(tmp_path),
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "AZURE_CONFIG_DIR": str(azure),
    }
    result = Program(server.control)(*shlex.split(example), **around)
    assert result.exit_code == 0, result.output
    if "--undo" in example:
        assert "Undone" in result.stdout
        return
    # What it prints is for `eval`: a shell takes it, and az is set up by it or has been before.
    shell = subprocess.run(
        ["sh", "-e", "-c", result.stdout],
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        env=around,
    )
    assert shell.returncode == 0, shell.stderr
    assert ("login" in [each.split()[0] for each in az.words]) == ("--sdk" not in example)
    tokens = json.loads(Program(server.control)("token", "list", "--json").stdout)["tokens"]
    assert tokens
