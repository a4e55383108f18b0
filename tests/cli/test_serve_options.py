"""What each option of `serve` sets."""

from importlib import import_module
from pathlib import Path

import pytest
from click.testing import Result

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.engine.node_roles import ALL_ROLES, NodeRole, NodeRoles
from fairwarning.metadata.settings import EndpointRules
from fairwarning.node import NodeSettings
from tests.cli.conftest import Program
from tests.operator_api.test_auth import make_certificate

SECRET = {"FAIRWARNING_PROXY_SECRET": "s3cret"}


class Serve:
    """The command, with what it would have started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = import_module("fairwarning.cli.serve")
        self.made: list[NodeSettings] = []
        self.is_json = False
        self.workers = 0

        def keep(settings: NodeSettings, workers: int, *, as_json: bool) -> None:
            self.made.append(settings)
            self.workers = workers
            self.is_json = as_json

        monkeypatch.setattr(module, "_run", keep)
        monkeypatch.setattr(module.logs, "set_up", lambda *_: None)

    def __call__(self, *options: str, **environment: str) -> NodeSettings:
        result = self.tried(*options, **environment)
        assert result.exit_code == 0, result.output
        return self.made[-1]

    def tried(self, *options: str, **environment: str) -> Result:
        return Program("")("serve", *options, **environment)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    return Serve(monkeypatch)


def test_without_options_it_is_as_documented(serve: Serve) -> None:
    made = serve()
    assert (list(made.metadata), made.control) == ([("127.0.0.1", 8169)], ("127.0.0.1", 8170))
    assert (made.azure, made.is_azure_optional, made.azure_folder) == (
        ("127.0.0.1", 8171),
        True,
        None,
    )
    assert (made.is_clock_virtual, made.clock_speed, made.tls, made.fleet) == (False, 0, None, None)
    assert made.makes_starter_fleet
    assert made.store_url.startswith("sqlite:///")
    assert made.rules == EndpointRules(store_s_max=3.0)
    timing = made.engine_rules.timing
    assert (timing.idle_ms, timing.lease_ms) == (DAY_MS, 30 * SECOND_MS)
    assert made.engine_rules.operations_pending_max == 10
    assert not serve.is_json


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (["--store", "memory:"], "store_url", "memory:"),
        (["--clock", "virtual"], "is_clock_virtual", True),
        (["--clock-speed", "60"], "clock_speed", 60),
        (["--empty"], "makes_starter_fleet", False),
        (["--control", "127.0.0.1:0"], "azure", ("127.0.0.1", 0)),
        (["--control", "127.0.0.1:65535"], "azure", ("127.0.0.1", 0)),
        (["--no-azure"], "azure", None),
        (["--azure", "127.0.0.1:9"], "azure", ("127.0.0.1", 9)),
        (["--azure", "127.0.0.1:9"], "is_azure_optional", False),
        (["--azure-folder", "/x"], "azure_folder", Path("/x")),
        (["--metadata", "127.0.0.1:1", "--metadata", "[::1]:2"], "metadata",
         [("127.0.0.1", 1), ("::1", 2)]),
    ],
)  # fmt: skip
def test_each_option_sets_its_own(
    serve: Serve, options: list[str], name: str, value: object
) -> None:
    assert getattr(serve(*options), name) == value


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (["--activation-delay", "120"], "activation_delay_s", 120),
        (["--rate", "0"], "requests_per_second_max", 0),
        (["--rate", "7"], "requests_per_second_max", 7),
        (["--unknown-version", "404"], "unknown_version_status", 404),
        (["--lenient-post"], "is_header_optional_on_post", True),
        (["--proxy", "10.0.0.1", "--proxy", "10.0.0.2"], "proxy_addresses",
         frozenset({"10.0.0.1", "10.0.0.2"})),
        (["--proxy", "10.0.0.1"], "proxy_secret", "s3cret"),
        ([], "proxy_secret", ""),
    ],
)  # fmt: skip
def test_so_does_each_rule_of_the_endpoint(
    serve: Serve, options: list[str], name: str, value: object
) -> None:
    assert getattr(serve(*options, **SECRET).rules, name) == value


@pytest.mark.parametrize(
    ("options", "idle_ms", "lease_ms"),
    [
        (["--idle-after", "1m", "--lease", "5s"], MINUTE_MS, 5 * SECOND_MS),
        (["--idle-after", "366d", "--lease", "10m"], 366 * DAY_MS, 10 * MINUTE_MS),
        (["--idle-after", "1h"], HOUR_MS, 30 * SECOND_MS),
    ],
)
def test_durations_reach_to_both_ends_of_what_is_allowed(
    serve: Serve, options: list[str], idle_ms: int, lease_ms: int
) -> None:
    timing = serve(*options).engine_rules.timing
    assert (timing.idle_ms, timing.lease_ms) == (idle_ms, lease_ms)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--idle-after", "59s"], "from 1m"),
        (["--idle-after", "367d"], "366d"),
        (["--lease", "601s"], "from 5s to 10m"),
        (["--tls-key", "{key}"], "belong together"),
        (["--tls-certificate", "{certificate}"], "belong together"),
        (["--proxy", "10.0.0.1"], "FAIRWARNING_PROXY_SECRET"),
        (["--proxy", "proxy.example"], "--proxy"),
        (["--azure", "127.0.0.1:1", "--no-azure"], "exclude each other"),
        (["--clock-speed", "0"], "--clock-speed"),
    ],
)
def test_what_cannot_be_is_refused(
    serve: Serve, tmp_path: Path, options: list[str], words: str
) -> None:
    certificate, key, _ = make_certificate(tmp_path)
    named = {"key": str(key), "certificate": str(certificate)}
    environment = SECRET if "proxy.example" in options else {"FAIRWARNING_PROXY_SECRET": ""}
    result = serve.tried(*(each.format(**named) for each in options), **environment)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert serve.made == []


def test_with_a_certificate_of_the_operators_there_is_no_other_door(
    serve: Serve, tmp_path: Path
) -> None:
    """Azure's clients come in by the control plane itself, which speaks TLS then."""
    certificate, key, _ = make_certificate(tmp_path)
    options = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    made = serve(*options)
    assert made.azure is None
    assert made.tls is not None
    assert (made.tls.certificate, made.tls.key) == (certificate, key)
    assert serve(*options, "--azure", "127.0.0.1:9").azure == ("127.0.0.1", 9)
    assert serve("--control", "192.0.2.1:8170").azure is None


def test_the_command_line_counts_more_than_the_file(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(
        'lease = "7s"\nempty = true\nno_azure = true\nrate = 3\n'
        'metadata = ["127.0.0.1:1", "127.0.0.1:2"]\n'
    )
    made = serve("--config", str(file), "--lease", "8s")
    assert made.engine_rules.timing.lease_ms == 8 * SECOND_MS
    assert (made.makes_starter_fleet, made.azure) == (False, None)
    assert made.rules.requests_per_second_max == 3
    assert list(made.metadata) == [("127.0.0.1", 1), ("127.0.0.1", 2)]


def test_all_mistakes_of_a_fleet_file_are_shown(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('tset = true\n[[vm]]\nname = "-"\n')
    result = serve.tried("--fleet", str(file))
    assert result.exit_code == 1
    first, second = result.stderr.splitlines()
    assert first == f"{file}:1: unknown key `tset`; did you mean `test`?"
    assert second.startswith(f"{file}:3: '-' is no name")


def test_the_newest_version_of_the_endpoint_is_set(serve: Serve) -> None:
    assert serve("--newest-version", "2024-07-09").rules.newest_version == "2024-07-09"
    refused = serve.tried("--newest-version", "2024-07-10")
    assert refused.exit_code == 2
    assert "2020-07-01" in refused.stderr


def test_the_number_of_workers_is_set(serve: Serve, tmp_path: Path) -> None:
    serve("--workers", "3", "--store", f"sqlite:///{tmp_path}/fw.db")
    assert serve.workers == 3
    serve()
    assert serve.workers == 0


PG = ("--store", "postgresql://fw@db/fw")


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        ((), ALL_ROLES),
        (("--role", "metadata"), {NodeRole.METADATA}),
        (("--role", "engine, control"), {NodeRole.ENGINE, NodeRole.CONTROL}),
        (("--role", "engine", "--role", "metadata"), {NodeRole.ENGINE, NodeRole.METADATA}),
        (("--role", ""), ALL_ROLES),
    ],
)
def test_roles_may_be_mixed(serve: Serve, options: tuple[str, ...], roles: NodeRoles) -> None:
    assert serve(*PG, *options).roles == roles


def test_roles_may_stand_in_the_configuration(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "fw.toml"
    file.write_text('role = ["engine", "control"]\n')
    assert serve(*PG, "--config", str(file)).roles == {NodeRole.ENGINE, NodeRole.CONTROL}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--role", "portal"), "choose from metadata, engine, control"),
        (("--role", "engine", "--workers", "2"), "--workers needs the role metadata"),
        (("--role", "metadata", "--fleet", "FLEET"), "--fleet needs the role engine"),
    ],
)
def test_roles_that_do_not_fit_are_refused(
    serve: Serve, tmp_path: Path, options: tuple[str, ...], text: str
) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text("")
    given = [str(fleet) if each == "FLEET" else each for each in options]
    result = serve.tried(*PG, *given)
    assert result.exit_code == 2
    assert text in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("given", "stale_s"), [("5m", 300.0), ("10s", 10.0), ("1d", 86_400.0), ("never", None)]
)
def test_how_long_old_documents_are_served(serve: Serve, given: str, stale_s: float | None) -> None:
    assert serve("--stale-max", given).rules.stale_s_max == stale_s


def test_how_long_the_store_is_waited_for(serve: Serve) -> None:
    assert serve("--store-timeout", "1s").rules.store_s_max == 1.0
    assert serve("--store-timeout", "1m").rules.store_s_max == 60.0


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--stale-max", "0s", "too short"),
        ("--stale-max", "9s", "or never"),
        ("--stale-max", "soon", "soon"),
        ("--store-timeout", "0s", "from 1s to 1m"),
        ("--store-timeout", "61s", "from 1s to 1m"),
    ],
)
def test_times_that_make_no_sense_are_refused(
    serve: Serve, option: str, value: str, text: str
) -> None:
    result = serve.tried(option, value)
    assert result.exit_code == 2
    assert text in " ".join(result.output.split())
