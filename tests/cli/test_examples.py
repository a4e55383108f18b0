"""Every example of every help, and of docs/cli.md, works in a small world that it talks about.

The world has a fleet, an event, a rollout, a token, a target of notifications, a dead letter and
the files that the examples name. An example that asks is answered with yes.
"""

import base64
import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import Result

from fairwarning.cli.api_client import Api
from fairwarning.cli.main import COMMANDS, main
from fairwarning.notifications.model import Delivery, Message
from fairwarning.notifications.records import NotificationRecords
from fairwarning.scenarios import library
from fairwarning.scenarios.recorder import Recorder
from fairwarning.testing import Server
from tests.cli.conftest import Program
from tests.cli.fake import fake_server
from tests.cli.test_serve import PROGRAM
from tests.support.patience import HANG_S
from tests.support.processes import free_port

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text()
EVENT = "602d9444-d2cd-49c7-8624-8643e7171297"
FAULT = "4f2a9c01"
FLEET = """\
test = true

[[availability_set]]
name = "web"
update_domains = 3
instances = ["web-0", "web-1", "web-2", "web-3"]

[[scale_set]]
name = "workers"
capacity = 3
terminate_notice = "5m"

[[vm]]
name = "db"

[[vm]]
name = "cache"

[[vm]]
name = "spot-0"
priority = "Spot"
"""
AGENT = """\
name = "web-0"
endpoint = "{url}/vm/web-0"
state = "{folder}/state.json"

listen = ""

[[rule]]
name = "drain"

  [[rule.scheduled]]
  run = ["true"]
  timeout = "10s"
"""
NETWORK = """\
server = "http://127.0.0.1:8169"

[[network]]
name = "tenant-a"
listen = "127.0.0.1:{port}"
guests = [{{ instance = "db", interface = "tap0", addresses = ["10.0.0.5"] }}]
"""
ELSEWHERE = ("azure-setup", "check ", "driver ", "fleet import ", "serve")
"""Other files run these: they need az, a handler, a driver, libvirt, or ports of their own."""
ENDLESS = (
    r"watch\b",
    r"record\b",
    r"network proxy",
    r"agent --config",
    r"scenario run .*--serve(?!.*--no-wait)",
)
"""These run until they are stopped, so they have to say something and then end at Ctrl-C."""


def every_command(
    group: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(main)
        for name in group.list_commands(context):
            child = group.get_command(context, name)
            assert child is not None
            yield from every_command(child, (*path, name))


def examples() -> list[str]:
    """Return the examples without what the shell does around them, and without remarks."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.replace("\\\n", " "), re.MULTILINE | re.DOTALL)
    helps = [command.epilog or "" for _, command in every_command(main)]
    pattern = r"(?:^|[\s(|;])fairwarning ([^|&>\n]+?)(?= {3,}|\s*[|&>\n]|\)|$)"
    found = {
        " ".join(each.split())
        for text in (*blocks, *helps)
        for each in re.findall(pattern, text, re.MULTILINE)
    }
    return sorted(each for each in found if each.split()[0] in COMMANDS)


EXAMPLES = [each for each in examples() if not each.startswith(ELSEWHERE)]
ENDING = [each for each in EXAMPLES if not any(re.match(known, each) for known in ENDLESS)]
STOPPED = [each for each in EXAMPLES if each not in ENDING]


def test_the_examples_are_found() -> None:
    assert len(EXAMPLES) > 100
    assert "token revoke ci" in EXAMPLES
    assert "notification test ops" in EXAMPLES


@contextmanager
def world(folder: Path, example: str) -> Iterator[tuple[Program, Server]]:
    (folder / "fleet.toml").write_text(FLEET)
    (folder / "mine.toml").write_text(library.text("live-migration"))
    (folder / "network.toml").write_text(NETWORK.format(port=free_port()))
    (folder / "proxy-secret").write_text("s3cret")
    (folder / "hook-key").write_text("whsec_" + base64.b64encode(bytes(24)).decode())
    with Server(fleet=FLEET) as server, fake_server() as receiver:
        receiver.on("POST /hook", {})
        (folder / "hook-url").write_text(f"{receiver.url}/hook")
        program = Program(server.control_url)
        (folder / "agent.toml").write_text(AGENT.format(url=server.url, folder=folder))
        for words in (
            "token create --role operator --name ci",
            "notification add webhook --name ops --url-file hook-url",
            "rollout start cache --type reboot --name patches --yes",
            "fault set empty --instance db",
        ):
            if words.split()[:2] != example.split()[:2]:
                assert program(*words.split()).exit_code == 0, words
        for name in ("web-0", "workers_0", "spot-0"):
            server.vm(name).document()
        _announce(program)
        if re.match("backup|restore|verify|migrate", example):
            _save_store(program, folder, has_backup=not example.startswith("backup"))
        if "run recorded.jsonl" in example:
            _record(server, folder / "recorded.jsonl")
        if "dead-letters" in example:
            server._background.call(_put_dead_letter(server))
        yield program, server


def _record(server: Server, file: Path) -> None:
    """Write a recording of one VM that sees a freeze coming."""
    lines: list[dict[str, Any]] = []

    def sleep(_: float) -> None:
        if len(lines) > 2:
            raise KeyboardInterrupt
        server.schedule("Freeze", "web-2", notice="15m")

    with suppress(KeyboardInterrupt):
        Recorder(server.vm("web-2").url, lines.append, seconds=lambda: 0, sleep=sleep).run(None)
    file.write_text("".join(f"{json.dumps(each)}\n" for each in lines))


def _save_store(program: Program, folder: Path, *, has_backup: bool) -> None:
    store = f"sqlite:///{folder}/fairwarning.db"
    made = program("token", "create", "--role", "admin", "--name", "ada", "--store", store)
    assert made.exit_code == 0, made.output
    if has_backup:
        assert program("backup", "monday.backup", "--store", store).exit_code == 0


def _announce(program: Program) -> None:
    """Announce the event that the examples talk about, whose id they know."""
    body = {"type": "Reboot", "targets": ["web-1"], "id": EVENT}
    api = Api(program.url)
    api.post("events", body=body)
    api.close()


async def _put_dead_letter(server: Server) -> None:
    records = NotificationRecords(server._loop.node.store)
    (target,) = await records.targets()
    message = Message(id="m", title="t", text="t", body="{}")
    now = server._loop.clock.now()
    await records.put_dead(
        Delivery(
            id="019a5f2c-4b",
            target_id=target.id,
            position=await server._loop.node.store.end(),
            message=message,
            attempts=8,
            next_try_ms=now,
            last_error="refused",
        )
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    known = SimpleNamespace(token_hex=lambda _: FAULT)
    monkeypatch.setattr("fairwarning.engine.active_faults.secrets", known)
    monkeypatch.setattr(
        "fairwarning.cli.backup.default_store_url", lambda: f"sqlite:///{tmp_path}/fairwarning.db"
    )
    monkeypatch.setenv("FAIRWARNING_AGENT_CONFIG", str(tmp_path / "agent.toml"))
    monkeypatch.setenv("FAIRWARNING_PROXY_SECRET", "s3cret")
    return tmp_path


@contextmanager
def passing(server: Server) -> Iterator[None]:
    """Let the virtual clock run, for what waits until an event is over."""
    stopped = threading.Event()

    def run() -> None:
        while not stopped.wait(0.02):
            server.advance(minutes=1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def answered(program: Program, words: list[str]) -> Result:
    given = FLEET if "fleet" in words else "http://127.0.0.1:9/hook"
    if "apprise" in words:
        given = "json://127.0.0.1:9/chat"
    result = program(*words, input=given)
    if "say --yes" in result.output:
        result = program(*words, "--yes", input=given)
    return result


@contextmanager
def agent_beside() -> Iterator[None]:
    """Run the agent of the world's config until the end."""
    command = [*PROGRAM, "agent", "--config", "agent.toml"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"watching" in process.stderr.readline()
        try:
            yield
        finally:
            process.terminate()
            process.communicate(timeout=HANG_S)


@pytest.mark.filterwarnings("ignore:.*imghdr:DeprecationWarning")  # Apprise imports it.
@pytest.mark.parametrize("example", ENDING)
def test_every_example_works(example: str, folder: Path) -> None:
    words = shlex.split(example)
    with world(folder, example) as (program, server):
        if words[:2] == ["agent", "status"]:
            with agent_beside():
                result = answered(program, words)
        elif "--wait" in words:
            with passing(server):
                result = answered(program, words)
        else:
            result = answered(program, words)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("example", STOPPED)
def test_every_endless_example_works_until_it_is_stopped(example: str, folder: Path) -> None:
    with world(folder, example) as (program, server):
        found = example.replace("http://127.0.0.1:8169", server.url)
        words = shlex.split(found.replace("127.0.0.1:8169", "127.0.0.1:0"))
        environment = {
            **os.environ,
            "FAIRWARNING_URL": program.url,
            "FAIRWARNING_ENDPOINT": server.vm("web-2").url,
        }
        with subprocess.Popen(
            [*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        ) as process:
            assert process.stdout is not None
            with passing(server) if words[0] == "watch" else nullcontext():
                said = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=HANG_S)
    assert said
    assert not said.startswith(b"fairwarning: "), said
    assert b"Traceback" not in said + rest
