"""The program in this process, against a fake server or the real one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fairwarning.cli.main import main
from tests.cli.fake import Fake, fake_server

VARIABLES = ("URL", "TOKEN", "CA_FILE", "NOTIFICATION_URL", "NOTIFICATION_SECRET")


@pytest.fixture(autouse=True, scope="session")
def own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test may touch what the developer's own server keeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture
def fake() -> Iterator[Fake]:
    with fake_server() as found:
        yield found


@dataclass
class Program:
    url: str

    def __call__(self, *arguments: str, input: str | None = None, **environment: str) -> Result:
        clean: dict[str, Any] = {f"FAIRWARNING_{name}": None for name in VARIABLES}
        env = {**clean, "FAIRWARNING_URL": self.url, **environment}
        return CliRunner().invoke(main, arguments, input=input, env=env)


@pytest.fixture
def run(fake: Fake) -> Program:
    return Program(fake.url)


def said(result: Result, place: str = "fairwarning") -> str:
    """The one line on standard error of a command that did not work."""
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{place}: ")
    return line
