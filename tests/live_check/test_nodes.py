"""What a server's log and its end tell."""

import asyncio
import signal
from pathlib import Path

import pytest

from fairwarning.live_check import nodes
from fairwarning.live_check.nodes import Node, is_error, serve_options
from fairwarning.live_check.records import NodeChange, Record
from tests.support.patience import HANG_S


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"level": "info", "message": "a"}', False),
        (b'{"level": "warning", "message": "a"}', False),
        (b'{"level": "error", "message": "a request broke"}', True),
        (b'{"level": "critical", "message": "a"}', True),
        (b'{"level": "error", "message": "timeout graceful shutdown exceeded"}', False),
        (b"Traceback (most recent call last):", True),
        (b'{"level": "error", "mess{"level": "info"}', False),
    ],
)
def test_a_line_of_a_log_that_tells_of_a_bug(line: bytes, expected: bool) -> None:
    assert is_error(line) is expected


class Notes(list[Record]):
    def changes(self) -> list[str]:
        return [each.change for each in self if isinstance(each, NodeChange)]

    def details(self) -> list[str]:
        return [each.detail for each in self if isinstance(each, NodeChange)]


async def running(folder: Path, program: str) -> Node:
    """A node whose process is a shell that has said that it runs."""
    node = Node(1, folder, [])
    node.log.touch()
    node._process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", program, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    node.is_up = True
    assert node._process.stdout is not None
    await node._process.stdout.readline()
    return node


async def test_a_server_that_does_not_stop_is_killed_and_that_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "STOP_S_MAX", 0.01)
    node, notes = await running(tmp_path, "trap '' TERM; echo; exec sleep 1000"), Notes()
    await node.stop(notes.append)
    assert notes.changes() == ["stopped", "killed"]
    assert node.pid is None
    assert not node.is_up
    await node.kill(notes.append)
    assert len(notes) == 2, "one that has ended is not ended again"


async def test_a_kill_ends_the_workers_of_a_server_too(tmp_path: Path) -> None:
    node = await running(tmp_path, "sleep 1000 & echo; wait")
    await node.kill(Notes().append)
    assert node._process is not None
    assert node._process.stdout is not None
    # It ends when no process has it open any more.
    async with asyncio.timeout(HANG_S):
        await node._process.stdout.read()


async def test_a_server_that_ends_by_itself_has_died_with_its_last_words(tmp_path: Path) -> None:
    node, notes = await running(tmp_path, "echo; exit 3"), Notes()
    assert node._process is not None
    await node._process.wait()
    node.log.write_text("first\nlast\n")
    assert node.has_died
    node.note_death(notes.append)
    assert (notes.changes(), notes.details()) == (["died"], ["exit code 3: last"])
    assert not node.has_died


async def test_a_paused_server_goes_on_even_if_the_pause_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, notes = Node(1, tmp_path, []), Notes()
    sent: list[signal.Signals] = []
    monkeypatch.setattr(node, "_signal", sent.append)
    pausing = asyncio.create_task(node.pause(1_000, notes.append))
    await asyncio.sleep(0)
    assert notes.changes() == ["paused"]
    pausing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pausing
    assert notes.changes() == ["paused", "continued"]
    assert sent == [signal.SIGSTOP, signal.SIGCONT]


def test_an_error_in_the_log_is_noted_once(tmp_path: Path) -> None:
    node, notes = Node(1, tmp_path, []), Notes()
    node.log.write_text('{"level": "info"}\n{"level": "error", "message": "a"}\n')
    node.note_errors(notes.append)
    node.note_errors(notes.append)
    with node.log.open("a") as log:
        log.write('{"level": "error", "message": "b"}\n')
    node.note_errors(notes.append)
    assert notes.changes() == ["error", "error"]
    assert ['"a"' in each for each in notes.details()] == [True, False]


async def test_the_first_process_runs_the_first_program_and_later_ones_this_version(
    tmp_path: Path,
) -> None:
    """The other version only says where it was loaded from, in place of becoming ready."""
    package = tmp_path / "src/fairwarning"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    ready = '{"metadata": ["http://old"], "control": "http://old"}'
    (package / "__main__.py").write_text(f"print({ready!r})")
    node = Node(1, tmp_path, serve_options("memory:", 10), first_program=tmp_path / "src")
    await node.start(Notes().append)
    assert node.control_url == "http://old"
    await node.kill(Notes().append)
    await node.start(Notes().append)
    try:
        assert node.control_url.startswith("http://127.0.0.1:")
    finally:
        await node.kill(Notes().append)
