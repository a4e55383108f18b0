"""Servers of an upstream in a file; the rules of the text, and the file with its reload."""

import asyncio
import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.nginx import (
    NginxHandler,
    NotUnderstood,
    put_back,
    servers,
    taken_out,
)
from fairwarning.agent.config.model import Action, Nginx
from tests.agent.actions.contexts import context

TEXT = """# upstream web { server 10.0.0.1:80; }
upstream api { server 10.0.0.1:80; }
upstream web {
    zone web 64k;   # server 10.0.0.1:80;
    server  10.0.0.1:80   weight=5 ;
    server "10.0.0.2:80" down;
    server 10.0.0.1:8080;
}
server { listen 80; location ~ "^/a{2};" { proxy_pass http://web; } }
"""


def down(text: str, server: str = "10.0.0.1:80") -> str:
    return taken_out(text, servers(text, "web", server))


def test_only_the_server_of_the_upstream_is_marked() -> None:
    assert down(TEXT) == TEXT.replace("weight=5 ;", "weight=5 down ;")


def test_a_server_that_is_down_stays_as_it_is() -> None:
    assert down(TEXT, "10.0.0.2:80") == TEXT
    found = servers(TEXT, "web", "10.0.0.2:80")
    assert put_back(TEXT, found, [True]) == TEXT


@pytest.mark.parametrize(
    ("upstream", "server", "complaint"),
    [("wbe", "10.0.0.1:80", "no `upstream wbe`"), ("web", "10.0.0.9:80", "no `server 10.0.0.9")],
)
def test_what_is_not_there_is_named(upstream: str, server: str, complaint: str) -> None:
    with pytest.raises(NotUnderstood, match=complaint):
        servers(TEXT, upstream, server)


def test_what_cannot_be_read_is_named_by_its_line() -> None:
    with pytest.raises(NotUnderstood, match="line 3"):
        servers('upstream web {\n server a;\n"}', "web", "a")


_SPACE = st.sampled_from([" ", "\t", "\n  ", " # down; }\n"])
_ENTRY = st.tuples(
    st.sampled_from(["a:80", "b:80", '"a:80"', "unix:/run/a"]),
    st.lists(st.sampled_from(["weight=2", "backup", "down", "max_fails=0"]), max_size=3),
    _SPACE,
    st.sampled_from(["", " ", "\n", " #x\n"]),
)


@given(st.lists(_ENTRY, min_size=1))
def test_put_back_leaves_every_character_as_it_was(
    entries: list[tuple[str, list[str], str, str]],
) -> None:
    lines = [f"server{gap}{gap.join([at, *words])}{end};" for at, words, gap, end in entries]
    text = "upstream web {" + "\n".join([*lines, "server a:80;"]) + "}"
    found = servers(text, "web", "a:80")
    out = taken_out(text, found)
    after = servers(out, "web", "a:80")
    assert all(each.is_down for each in after)
    assert taken_out(out, after) == out
    assert put_back(out, after, [each.is_down for each in found]) == text


def action(file: Path, reload: str) -> Action:
    settings = Nginx(
        file=str(file), upstream="web", server="10.0.0.1:80", reload=("/bin/sh", "-c", reload)
    )
    return Action(settings=settings)


async def test_the_file_is_changed_and_loaded_and_put_back_exactly(tmp_path: Path) -> None:
    real, link, seen = tmp_path / "web.conf", tmp_path / "link", tmp_path / "seen"
    before = TEXT.encode() + b"# caf\xe9\r\n"
    real.write_bytes(before)
    real.chmod(0o640)
    link.symlink_to(real)
    out = action(link, f"grep -c 'weight=5 down' {real} >>{seen} || true")
    kept: dict[str, str] = {}
    await NginxHandler().do(out, context(kept))
    await NginxHandler().do(out, context(kept))
    assert real.read_bytes() == before.replace(b"weight=5 ;", b"weight=5 down ;")
    await NginxHandler().undo(out, context(kept))
    assert seen.read_text() == "1\n1\n0\n", "a reload each time, with the file already changed"
    assert real.read_bytes() == before
    assert real.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "seen", "web.conf"]


async def test_a_reload_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "web.conf"
    file.write_text(TEXT)
    with pytest.raises(ActionFailed, match=r"sh ended with code 1: nginx: \[emerg\]"):
        await NginxHandler().do(action(file, "echo 'nginx: [emerg]' >&2; exit 1"), context())
    assert file.read_text() == TEXT


async def test_cut_off_in_the_reload_it_is_put_back_by_the_undo(tmp_path: Path) -> None:
    file, fifo = tmp_path / "web.conf", tmp_path / "fifo"
    file.write_text(TEXT)
    os.mkfifo(fifo)
    kept: dict[str, str] = {}
    doing = NginxHandler().do(action(file, f"echo >{fifo}; sleep 1000"), context(kept))
    task = asyncio.create_task(doing)
    await asyncio.to_thread(fifo.read_text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await NginxHandler().undo(action(file, "true"), context(kept))
    assert file.read_text() == TEXT


async def test_undo_of_what_was_never_done_touches_nothing(tmp_path: Path) -> None:
    await NginxHandler().undo(action(tmp_path / "none", "exit 1"), context())


async def test_a_file_that_somebody_wrote_anew_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "web.conf"
    file.write_text(TEXT)
    kept: dict[str, str] = {}
    await NginxHandler().do(action(file, "true"), context(kept))
    file.write_text("upstream web { server 10.0.0.7:80; }")
    await NginxHandler().undo(action(file, "true"), context(kept))
    assert file.read_text() == "upstream web { server 10.0.0.7:80; }"


async def test_a_file_that_cannot_be_read_is_a_failure_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ActionFailed, match=r"none cannot be read: No such file"):
        await NginxHandler().do(action(tmp_path / "none", "true"), context())


async def test_a_server_that_the_file_does_not_have_is_a_failure_that_names_the_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "web.conf"
    file.write_text("upstream web { server 10.0.0.7:80; }")
    kept: dict[str, str] = {}
    with pytest.raises(ActionFailed, match=r"web\.conf: .*no `server 10\.0\.0\.1:80"):
        await NginxHandler().do(action(file, "true"), context(kept))
    assert kept == {}


async def test_without_a_reload_only_the_file_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "web.conf"
    file.write_text(TEXT)
    settings = Nginx(file=str(file), upstream="web", server="10.0.0.1:80", reload=())
    await NginxHandler().do(Action(settings=settings), context())
    assert file.read_text() == down(TEXT)


async def test_a_full_disk_leaves_the_file_as_it_was_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "web.conf"
    file.write_text(TEXT)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ActionFailed, match=r"web\.conf cannot be written: No space left"):
        await NginxHandler().do(action(file, "true"), context())
    assert file.read_text() == TEXT
    assert os.listdir(tmp_path) == ["web.conf"]
