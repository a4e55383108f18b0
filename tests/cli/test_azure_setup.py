"""`azure-setup`: what it prints can be pasted, what it runs is az, and all of it can be undone.

az itself is 730 MB and has its own command to test with; here a script stands in that writes
down how it was called.
"""

import json
import shlex
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.cli.azure_env import (
    Access,
    az_lines,
    environment,
    exports,
    sdk_environment,
)
from tests.cli.conftest import Program, said
from tests.cli.fake import Fake, problem

URL = "https://127.0.0.1:8171"
TENANT = "11111111-2222-3333-4444-555555555555"
SECRET = "fw_0123456789ab_" + "s" * 43
AZURE = {"url": URL, "ca": "THE AUTHORITY\n", "tenant": TENANT, "subscription": "sub"}
AZ = """#!{python} -IS
import json, os, sys
from pathlib import Path
home = Path(os.environ["AZURE_CONFIG_DIR"])
words = sys.argv[1:]
call = {{"words": words, "said": "" if sys.stdin.isatty() else sys.stdin.read(),
        "ca": os.environ.get("REQUESTS_CA_BUNDLE", "")}}
with (home / "calls").open("a") as calls:
    calls.write(json.dumps(call) + "\\n")
clouds = home / "clouds.config"
if words[0] == (home / "fails").read_text():
    sys.exit("WARNING: never mind\\nERROR: this is why\\nmore of it")
if words[:2] == ["cloud", "register"]:
    clouds.write_text("[" + words[3] + "]\\n")
if words[:2] == ["cloud", "unregister"]:
    clouds.unlink()
if words[:2] == ["cloud", "show"]:
    print(json.dumps({{"name": (home / "active").read_text()}}))
if words[:2] == ["cloud", "set"]:
    (home / "active").write_text(words[3])
if words[:2] == ["account", "list"]:
    print((home / "accounts").read_text())
"""


@dataclass
class FakeAz:
    home: Path

    @property
    def calls(self) -> list[dict[str, Any]]:
        path = self.home / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def words(self) -> list[str]:
        return [" ".join(call["words"][:4]) for call in self.calls]

    def has(self, active: str, *accounts: tuple[str, str]) -> None:
        (self.home / "active").write_text(active)
        found = [{"user": {"name": name}, "cloudName": cloud} for name, cloud in accounts]
        (self.home / "accounts").write_text(json.dumps(found))

    def fails_at(self, word: str) -> None:
        (self.home / "fails").write_text(word)


@dataclass
class Rig:
    program: Program
    fake: Fake
    az: FakeAz
    data: Path
    path: str

    def __call__(self, *arguments: str, **environment: str) -> Result:
        given = {
            "PATH": self.path,
            "AZURE_CONFIG_DIR": str(self.az.home),
            "XDG_DATA_HOME": str(self.data),
            **dict.fromkeys(("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), ""),
            **environment,
        }
        return self.program("azure-setup", *arguments, **given)

    @property
    def ca_file(self) -> Path:
        return self.data / "fairwarning/azure/Fairwarning.pem"


@pytest.fixture
def rig(fake: Fake, run: Program, tmp_path: Path) -> Rig:
    home, programs = tmp_path / "azure", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    script = programs / "az"
    script.write_text(AZ.format(python=sys.executable))
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    az = FakeAz(home)
    az.has("AzureCloud")
    az.fails_at("")
    fake.on("GET /azure", AZURE)
    made = {"id": "0123456789ab", "name": "azure-it", "role": "operator", "secret": SECRET,
            "expires": None}  # fmt: skip
    fake.on("POST /tokens", made)
    fake.on("GET /tokens", {"tokens": [], "next": None})
    fake.on("DELETE /tokens/0123456789ab", {"done": True})
    return Rig(run, fake, az, tmp_path / "data", str(programs))


def test_the_lines_can_be_pasted_and_hold_all_that_az_needs(rig: Rig) -> None:
    result = rig()
    assert result.exit_code == 0, result.output
    assert "never again" in result.stderr
    trust, register, use, login = result.stdout.splitlines()
    assert trust == f"export REQUESTS_CA_BUNDLE={rig.ca_file}"
    assert rig.ca_file.read_text() == AZURE["ca"]
    assert register == f"az cloud register -n Fairwarning --endpoint-resource-manager {URL}"
    assert use == "az cloud set -n Fairwarning"
    assert login == (
        f"printf %s {SECRET} | az login --service-principal -u azure-it -p @- --tenant {TENANT}"
    )
    done = subprocess.run(
        ["/bin/sh", "-ec", result.stdout], check=False, capture_output=True, text=True,
        env={"PATH": rig.path, "AZURE_CONFIG_DIR": str(rig.az.home)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [call["words"][0] for call in rig.az.calls] == ["cloud", "cloud", "login"]
    assert rig.az.calls[-1] == {
        "words": shlex.split(login.partition("| az ")[2]), "said": SECRET, "ca": str(rig.ca_file),
    }  # fmt: skip


def test_a_cloud_that_az_knows_is_brought_up_to_date(rig: Rig) -> None:
    (rig.az.home / "clouds.config").write_text("[Fairwarning]\nendpoint_management = https://x\n")
    assert "\naz cloud update -n Fairwarning " in rig().stdout
    assert "\naz cloud register -n Other " in rig("--name", "Other").stdout


def test_the_token_is_what_was_asked_for_under_a_name_of_its_own(rig: Rig) -> None:
    rig("--role", "viewer", "--expires", "8h", "--why", "a try")
    rig()
    first, second = rig.fake.of("POST /tokens")
    assert first.query == {"why": ["a try"]}
    assert (first.json["role"], first.json["expires"]) == ("viewer", "PT8H")
    assert (second.json["role"], "expires" in second.json) == ("operator", False)
    for each in (first, second):
        assert each.json["name"].startswith("azure-Fairwarning-")
        assert len(each.json["name"]) <= 64
        assert "idempotency-key" not in each.headers, "the server would have to keep the secret"
    assert first.json["name"] != second.json["name"]


def test_for_the_sdks_it_prints_their_environment(rig: Rig) -> None:
    lines = rig("--sdk").stdout.splitlines()
    found = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    assert found == {
        "REQUESTS_CA_BUNDLE": str(rig.ca_file),
        "NODE_EXTRA_CA_CERTS": str(rig.ca_file),
        "AZURE_AUTHORITY_HOST": URL,
        "AZURE_TENANT_ID": "adfs",
        "AZURE_CLIENT_ID": "azure-it",
        "AZURE_CLIENT_SECRET": SECRET,
        "AZURE_SUBSCRIPTION_ID": "sub",
        "AZURE_CLOUD_ENVIRONMENT": URL,
        "AZURE_TENANT": "adfs",
        "AZURE_SECRET": SECRET,
    }


def test_run_runs_az_and_never_shows_it_the_secret_on_the_command_line(rig: Rig) -> None:
    rig.az.has("AzureCloud", ("old", "Fairwarning"), ("me@example.com", "AzureCloud"))
    result = rig("--run")
    assert result.exit_code == 0, result.output
    assert rig.az.words == [
        "cloud register -n Fairwarning",
        "cloud set -n Fairwarning",
        "account list --all --output",
        "logout --username old --output",
        "login --service-principal -u azure-it",
    ]
    assert all(call["ca"] == str(rig.ca_file) for call in rig.az.calls)
    assert SECRET not in str([call["words"] for call in rig.az.calls])
    assert rig.az.calls[-1]["said"] == SECRET
    assert result.stdout == f"export REQUESTS_CA_BUNDLE={rig.ca_file}\n"
    assert SECRET not in result.output


def test_run_works_a_second_time(rig: Rig) -> None:
    assert rig("--run").exit_code == 0
    rig.az.has("Fairwarning", ("azure-it", "Fairwarning"))
    assert rig("--run").exit_code == 0
    assert rig.az.words[-5:] == [
        "cloud update -n Fairwarning",
        "cloud set -n Fairwarning",
        "account list --all --output",
        "logout --username azure-it --output",
        "login --service-principal -u azure-it",
    ]


def test_run_revokes_what_it_made_before_and_only_once_az_has_the_new_one(rig: Rig) -> None:
    rig("--run")
    name = rig.fake.of("POST /tokens")[0].json["name"]
    tokens = [
        {"id": "0123456789ab", "name": name},
        {"id": "old", "name": name[:-6] + "abcdef"},
        {"id": "other", "name": "azure-Other-me@here-012345"},
    ]
    rig.fake.on("GET /tokens", {"tokens": tokens, "next": None})
    rig.fake.on("DELETE /tokens/old", {"done": True})
    rig.az.fails_at("login")
    rig("--run")
    assert not rig.fake.of("DELETE /tokens/old"), "az may still use it"
    rig.az.fails_at("")
    deleted = len(rig.fake.of("DELETE /tokens/0123456789ab"))
    assert rig("--run").exit_code == 0
    assert rig.fake.of("DELETE /tokens/old")
    assert len(rig.fake.of("DELETE /tokens/0123456789ab")) == deleted, "it is the new one"
    assert not rig.fake.of("DELETE /tokens/other")


def test_run_without_az_says_so_before_it_makes_a_token(rig: Rig) -> None:
    result = rig("--run", PATH="/nonexistent")
    assert "no az on PATH" in said(result)
    assert not rig.fake.of("POST /tokens")


def test_when_az_fails_its_reason_is_told_and_the_token_is_revoked(rig: Rig) -> None:
    rig.az.fails_at("login")
    line = said(rig("--run"))
    assert line == "fairwarning: `az login --service-principal` failed: this is why"
    assert rig.fake.of("DELETE /tokens/0123456789ab")


def test_undo_puts_az_back_and_revokes_our_tokens_and_no_others(rig: Rig) -> None:
    rig("--run")
    name = rig.fake.of("POST /tokens")[0].json["name"]
    tokens = [
        {"id": "0123456789ab", "name": name},
        {"id": "b", "name": name[:-6] + "nothex"},
        {"id": "c", "name": f"{name}0"},
        {"id": "d", "name": "azure-Other-me@here-012345"},
    ]
    rig.fake.on("GET /tokens", {"tokens": tokens, "next": None})
    rig.az.has("Fairwarning", ("azure-it", "Fairwarning"), ("me@example.com", "AzureCloud"))
    before = len(rig.az.calls)
    result = rig("--undo", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["revoked"] == [{"id": "0123456789ab", "name": name}]
    assert rig.az.words[before:] == [
        "cloud show --output json",
        "account list --all --output",
        "cloud set -n Fairwarning",
        "logout --username azure-it --output",
        "cloud set -n AzureCloud",
        "cloud unregister -n Fairwarning",
    ]
    assert [each.path for each in rig.fake.asked if each.method == "DELETE"] == [
        "/tokens/0123456789ab"
    ]
    assert not rig.ca_file.exists()


def test_undo_leaves_az_in_the_cloud_that_it_is_in(rig: Rig) -> None:
    rig("--run")
    rig.fake.on("GET /tokens", {"tokens": [], "next": None})
    rig.az.has("AzureChinaCloud", ("azure-it", "Fairwarning"))
    assert rig("--undo").exit_code == 0
    assert (rig.az.home / "active").read_text() == "AzureChinaCloud"


def test_undo_goes_on_when_a_login_cannot_be_dropped(rig: Rig) -> None:
    rig("--run")
    rig.fake.on("GET /tokens", {"tokens": [], "next": None})
    rig.az.has("Fairwarning", ("azure-it", "Fairwarning"))
    rig.az.fails_at("logout")
    result = rig("--undo")
    assert result.exit_code == 0
    assert "this is why" in result.stderr
    assert rig.az.words[-1] == "cloud unregister -n Fairwarning"


def test_undo_needs_no_az(rig: Rig) -> None:
    rig.fake.on("GET /tokens", {"tokens": [], "next": None})
    result = rig("--undo", PATH="/nonexistent")
    assert result.exit_code == 0
    assert "no az on PATH" in result.stderr


def test_json_has_everything_and_the_secret_only_where_it_is_needed(rig: Rig) -> None:
    printed = json.loads(rig("--json").stdout)
    assert printed["secret"] == SECRET
    assert printed["clientId"] == "azure-it"
    assert printed["caFile"] == str(rig.ca_file)
    assert len(printed["lines"]) == 4
    ran = rig("--json", "--run")
    assert SECRET not in ran.output
    assert json.loads(ran.stdout)["environment"] == {"REQUESTS_CA_BUNDLE": str(rig.ca_file)}


def test_the_authority_goes_where_it_is_wanted(rig: Rig, tmp_path: Path) -> None:
    wanted = tmp_path / "else where" / "ca.pem"
    first = rig("--ca-out", str(wanted)).stdout.splitlines()[0]
    assert shlex.split(first) == ["export", f"REQUESTS_CA_BUNDLE={wanted}"]
    assert wanted.read_text() == AZURE["ca"]
    (tmp_path / "file").write_text("")
    assert "--ca-out" in said(rig("--ca-out", str(tmp_path / "file" / "ca.pem")))


def test_a_server_that_does_not_listen_to_azures_clients_says_how_it_would(rig: Rig) -> None:
    rig.fake.on("GET /azure", {**AZURE, "url": None, "ca": None})
    assert "--azure HOST:PORT" in said(rig())
    assert not rig.fake.of("POST /tokens")


def test_who_may_not_make_tokens_is_told_so(rig: Rig) -> None:
    rig.fake.on("POST /tokens", problem(403, "role-too-low", "this needs the role admin"))
    assert "role-too-low" in said(rig())


@pytest.mark.parametrize("arguments", [
    ("--name", "AzureCloud"), ("--name", "azureusgovernment"), ("--name", "a b"),
    ("--name", ""), ("--name", "[x]"), ("--undo", "--run"), ("--undo", "--sdk"),
    ("--expires", "soon"), ("--role", "owner"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_before_anything_happens(
    rig: Rig, arguments: tuple[str, ...]
) -> None:
    assert rig(*arguments).exit_code == 2
    assert not rig.fake.asked
    assert not rig.az.calls


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=20)


@given(st.builds(Access, TEXT, st.just(URL), TEXT, TEXT, TEXT, TEXT, TEXT))
def test_whatever_the_values_are_a_shell_reads_them_back(access: Access) -> None:
    variables = {**environment(access, {}), **sdk_environment(access)}
    for line, (name, value) in zip(exports(variables), variables.items(), strict=True):
        assert shlex.split(line) == ["export", f"{name}={value}"]
    *_, login = az_lines(access, is_known=False)
    words = shlex.split(login)
    assert words[:3] == ["printf", "%s", access.secret]
    assert words[words.index("-u") + 1] == access.client_id


@pytest.mark.parametrize(("url", "around", "spared"), [
    (URL, {}, None),
    (URL, {"no_proxy": "x"}, None),
    (URL, {"https_proxy": "http://p"}, "127.0.0.1"),
    (URL, {"HTTPS_PROXY": "http://p", "NO_PROXY": "a, b"}, "a, b,127.0.0.1"),
    (URL, {"HTTPS_PROXY": "http://p", "no_proxy": "localhost, 127.0.0.1"}, None),
    ("https://fw.example", {"https_proxy": "http://p"}, None),
])  # fmt: skip
def test_no_proxy_stands_between_az_and_this_machine(
    url: str, around: dict[str, str], spared: str | None
) -> None:
    access = Access("c", url, "t", "s", "i", "x", "ca.pem")
    found = environment(access, around)
    assert found.pop("REQUESTS_CA_BUNDLE") == "ca.pem"
    assert found == ({} if spared is None else {"no_proxy": spared, "NO_PROXY": spared})
