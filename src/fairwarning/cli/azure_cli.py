"""Azure's own command line, run for the user."""

import configparser
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairwarning.cli.azure_lines import Access, login_words, register_words, set_words
from fairwarning.cli.problems import Problem

_HOME_CLOUD = "AzureCloud"
_STEP_S_MAX = 180


class Az:
    def __init__(self, program: str, variables: Mapping[str, str]) -> None:
        self._program = program
        self._env = {**os.environ, **variables}

    def set_up(self, access: Access) -> None:
        """Also a second time: the cloud is brought up to date, and older logins are dropped."""
        self._run(register_words(access, is_known=is_registered(access.cloud)))
        self._run(set_words(access.cloud))
        for client in self._clients(access.cloud):
            self._log_out(client)
        self._run(login_words(access), said=access.secret)

    def undo(self, cloud: str) -> list[str]:
        """Back to where az was without us; what could not be done is told."""
        if not is_registered(cloud):
            return [f"az knows no cloud {cloud}"]
        active = json.loads(self._run(["cloud", "show"]))["name"]
        clients = self._clients(cloud)
        failures = []
        if clients:
            # az asks the active cloud about every login that it drops.
            self._run(set_words(cloud))
            failures = [text for each in clients if (text := self._log_out(each))]
        self._run(set_words(_HOME_CLOUD if active == cloud else active))
        self._run(["cloud", "unregister", "-n", cloud])
        return failures

    def _clients(self, cloud: str) -> list[str]:
        """Who is logged in to this cloud."""
        found = json.loads(self._run(["account", "list", "--all"]))
        return sorted({each["user"]["name"] for each in found if each["cloudName"] == cloud})

    def _log_out(self, client: str) -> str:
        """Why it did not work, if so: it needs the server, and a login is worthless without."""
        try:
            self._run(["logout", "--username", client])
        except Problem as problem:
            return problem.message
        return ""

    def _run(self, words: Sequence[str], said: str = "") -> str:
        try:
            done = subprocess.run(  # noqa: S603  it is the user's own az
                [self._program, *words, "--output", "json", "--only-show-errors"],
                input=said, capture_output=True, text=True, check=False, env=self._env,
                timeout=_STEP_S_MAX,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Problem(f"az {words[0]} could not be run ({problem}); try it by hand") from None
        if done.returncode:
            raise Problem(f"`az {' '.join(words[:2])}` failed: {_reason(done.stderr)}")
        return done.stdout


def find_az() -> str | None:
    return shutil.which("az")


def is_registered(cloud: str) -> bool:
    """As az itself keeps it: asking az would take a second."""
    folder = Path(os.environ.get("AZURE_CONFIG_DIR") or "~/.azure").expanduser()
    clouds = configparser.RawConfigParser()
    try:
        clouds.read(folder / "clouds.config", encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return False
    return clouds.has_section(cloud)


def _reason(stderr: str) -> str:
    """The line that az means for people, and not its warnings."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it said nothing"])[0]
