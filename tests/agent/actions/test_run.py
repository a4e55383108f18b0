"""Commands of the user's, with real programs."""

import asyncio
import json
import logging
import os
import select
import signal
from pathlib import Path

import pytest

from fairwarning.agent.actions import processes
from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.processes import KEPT_BYTES
from fairwarning.agent.actions.registry import HANDLERS
from fairwarning.agent.config.model import Action, Run
from tests.agent.actions.contexts import context, program
from tests.support.patience import HANG_S


def shell(text: str) -> Action:
    return Action(settings=Run(command=("/bin/sh", "-c", text), is_shell=True))


async def do(action: Action) -> None:
    await HANDLERS[Run].do(action, context())


def is_running(pid: int) -> bool:
    """One that has ended and that nobody has asked about yet runs no more."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return said.rpartition(")")[2].split()[0] not in "ZX"


async def begun(action: Action, fifo: Path) -> tuple["asyncio.Task[None]", list[int]]:
    """The action once its program has written process ids into the fifo."""
    os.mkfifo(fifo)
    task = asyncio.create_task(do(action))
    pids = await asyncio.to_thread(fifo.read_text)
    return task, [int(pid) for pid in pids.split()]


async def cut_off(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_command_hears_of_the_event_on_its_input_and_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd/notify")
    monkeypatch.setenv("SHOP", "north")
    said = "import os\nseen = [sys.argv[1:], json.load(sys.stdin), dict(os.environ)]\n"
    tool = program(tmp_path, "tool", said + "(here / 'seen').write_text(json.dumps(seen))\n")
    await do(Action(settings=Run(command=(str(tool), "{event.type} of {me}", "{x}"))))
    arguments, payload, environment = json.loads((tmp_path / "seen").read_text())
    assert arguments == ["Reboot of Web-1", "{x}"]
    assert payload["event"]["EventId"] == "E-1"
    assert payload["phase"] == "scheduled"
    assert environment["FAIRWARNING_EVENT_ID"] == "E-1"
    assert environment["FAIRWARNING_EVENT_RESOURCES"] == "Web-1,web-2"
    assert environment["FAIRWARNING_ME"] == "Web-1"
    assert environment["FAIRWARNING_TIME_LEFT"] == "60"
    assert environment["SHOP"] == "north"
    assert "NOTIFY_SOCKET" not in environment, "a command would speak to systemd as the agent"


async def test_a_shell_reads_its_text_as_it_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    await do(shell(f'printf "%s" "$FAIRWARNING_EVENT_DESCRIPTION" >{out}'))
    assert out.read_text() == 'says "hi" & more'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("echo fine; echo 'no such pool' >&2; exit 3", "ended with code 3: no such pool"),
        ("kill -9 $$", "was ended by signal 9"),
    ],
)
async def test_a_failure_says_how_it_ended_and_its_last_words(text: str, complaint: str) -> None:
    with pytest.raises(ActionFailed, match=complaint):
        await do(shell(text))


async def test_a_program_that_is_not_there_is_a_failure_that_says_so() -> None:
    with pytest.raises(ActionFailed, match="cannot run '/nonesuch': No such file"):
        await do(Action(settings=Run(command=("/nonesuch",))))


async def test_what_it_says_is_in_the_log_and_never_without_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    await do(shell("yes moved | head -c 3000000; echo the end"))
    assert "the end" in caplog.text
    assert len(caplog.text) < 10_000


async def test_of_endless_words_only_the_end_is_held_in_memory() -> None:
    finished = await processes.run(
        ["/bin/sh", "-c", "yes moved | head -c 3000000; echo the end"], environment={}
    )
    assert finished.output.endswith("the end\n")
    assert len(finished.output) <= KEPT_BYTES + len("… ")


async def test_when_it_is_cut_off_it_is_asked_to_end_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", HANG_S)
    fifo, out = tmp_path / "fifo", tmp_path / "out"
    text = f"trap 'echo tidied >{out}; exit' TERM; echo $$ >{fifo}; while :; do sleep 0.01; done"
    task, _ = await begun(shell(text), fifo)
    await cut_off(task)
    assert out.read_text() == "tidied\n"


async def test_when_it_is_cut_off_its_last_words_are_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fifo = tmp_path / "fifo"
    # More than a pipe holds, so that it comes this far only once somebody listens.
    text = f"yes moved | head -c 300000; echo 3 pods are left >&2; echo $$ >{fifo}; sleep 1000"
    task, _ = await begun(shell(text), fifo)
    await cut_off(task)
    assert "sh was cut off; it last said: 3 pods are left" in caplog.text


async def test_when_it_is_cut_off_nothing_that_it_started_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.1)
    fifo = tmp_path / "fifo"
    text = f"trap '' TERM; sleep 1000 & echo $$ $! >{fifo}; wait; sleep 1000"
    task, pids = await begun(shell(text), fifo)
    assert len(pids) == 2
    handles = [os.pidfd_open(pid) for pid in pids]
    await cut_off(task)
    # The kernel ends a killed process in its own time; a handle says when it has.
    for handle in handles:
        ended, _, _ = await asyncio.to_thread(select.select, [handle], [], [], HANG_S)
        assert ended == [handle]
        os.close(handle)


async def test_when_it_is_cut_off_twice_it_has_still_ended_before_we_go_on(tmp_path: Path) -> None:
    """The agent may end while a command that was cut off takes its time."""
    fifo = tmp_path / "fifo"
    task, (pid,) = await begun(shell(f"trap '' TERM; echo $$ >{fifo}; sleep 1000"), fifo)
    task.cancel()
    await asyncio.sleep(0)
    await cut_off(task)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_what_a_command_leaves_running_on_purpose_is_not_waited_for(tmp_path: Path) -> None:
    out = tmp_path / "pid"
    await do(shell(f"sleep 1000 & echo $! >{out}"))
    pid = int(out.read_text())
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


async def test_no_file_stays_open(tmp_path: Path) -> None:
    await do(shell("true"))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await do(shell("echo some; echo more >&2"))
        with pytest.raises(ActionFailed):
            await do(Action(settings=Run(command=("/nonesuch",))))
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_command_is_undone_as_told_and_otherwise_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"
    back = Run(command=("/bin/sh", "-c", f"echo back >>{out}"), is_shell=True)
    action = Action(settings=Run(command=("true",)), undo=back)
    await HANDLERS[Run].undo(action, context())
    await HANDLERS[Run].undo(Action(settings=back), context())
    assert out.read_text() == "back\n"


async def test_a_word_that_no_program_can_be_given_is_a_failure_that_says_so() -> None:
    action = Action(settings=Run(command=("true", "a\0b")))
    with pytest.raises(ActionFailed, match="cannot run 'true': embedded null byte"):
        await do(action)
