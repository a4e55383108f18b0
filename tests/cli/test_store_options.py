"""Where the URL of a store may come from, and that its password is not shown by accident."""

from pathlib import Path

from fairwarning.cli.ready_message import shown_store
from tests.cli.test_serve_options import Serve, serve

__all__ = ["serve"]
URL = "postgresql://fw:hidden@db/fairwarning"


def test_the_url_comes_from_an_option_a_file_or_the_environment(
    serve: Serve, tmp_path: Path
) -> None:
    file = tmp_path / "store"
    file.write_text(f"{URL}\nand a note\n")
    assert serve("--store", "memory:", FAIRWARNING_STORE=URL).store_url == "memory:"
    assert serve(FAIRWARNING_STORE=URL).store_url == URL
    assert serve("--store-file", str(file), FAIRWARNING_STORE="memory:").store_url == URL
    config = tmp_path / "config.toml"
    config.write_text(f'store-file = "{file}"\nstore-direct = "postgresql://direct/fw"\n')
    made = serve("--config", str(config))
    assert (made.store_url, made.store_direct_url) == (URL, "postgresql://direct/fw")


def test_only_a_password_on_the_command_line_is_warned_of(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "store"
    file.write_text(URL)
    warned = serve.tried("--store", URL).stderr
    assert "the password in --store can be read by every user" in warned
    assert "hidden" not in warned
    assert serve.tried("--store", "postgresql://fw@db/fairwarning").stderr == ""
    assert serve.tried("--store-file", str(file)).stderr == ""
    assert serve.tried(FAIRWARNING_STORE=URL, FAIRWARNING_STORE_DIRECT=URL).stderr == ""
    direct = serve.tried("--store-direct", URL, FAIRWARNING_STORE=URL).stderr
    assert "the password in --store-direct" in direct


def test_two_sources_and_empty_files_are_refused(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "store"
    file.write_text("\n")
    for options, reason in {
        ("--store", "memory:", "--store-file", str(file)): "exclude each other",
        ("--store-file", str(file)): "is empty; write the store's URL there",
        ("--store-file", str(tmp_path / "none")): "does not exist",
        ("--store-direct", URL): "is for a store in PostgreSQL",
        ("--store", "memory:", "--store-direct", URL): "is for a store in PostgreSQL",
    }.items():
        tried = serve.tried(*options)
        assert tried.exit_code == 2
        assert reason in tried.stderr
    file.write_bytes(b"\xff")
    assert "cannot be read: it is not UTF-8" in serve.tried("--store-file", str(file)).stderr


def test_a_store_is_shown_without_secrets() -> None:
    assert shown_store(URL) == "postgresql://db/fairwarning"
    assert shown_store("postgresql://fw:p@a:1,b:2/fw?password=p") == "postgresql://a:1,b:2/fw"
    assert shown_store("host=a,b password=p") == "postgresql://…"
    assert shown_store("postgresql://fw:p@[::/fw") == "postgresql://…"
