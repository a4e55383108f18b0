"""Runs `fairwarning serve --workers N`: a supervisor, the engine's process and N workers."""

import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from fairwarning.cli.garbage import ShortCollections
from fairwarning.cli.serve import CANNOT_START, Started, run_node
from fairwarning.metadata.server import url_of
from fairwarning.node import CannotListen, NodeSettings, WorkerSockets
from fairwarning.operator_api.server import bound
from fairwarning.workers.children import Child, Tell
from fairwarning.workers.shared_addresses import open_for_workers
from fairwarning.workers.supervisor import Supervisor
from fairwarning.workers.worker import WorkerSettings, run_worker


def serve_with_workers(
    settings: NodeSettings, workers: int, on_ready: Callable[[Started], None]
) -> None:
    """Run the server until SIGTERM or SIGINT. Raises CannotListen or CannotStart."""
    with ExitStack() as exits:
        folder = Path(tempfile.mkdtemp(prefix="fairwarning-"))  # Only this user can open it.
        exits.callback(shutil.rmtree, folder, ignore_errors=True)
        path = str(folder / "engine.sock")
        by_worker = _open_metadata(settings, workers)
        sockets = _open_others(settings, path, [url_of(each) for each in by_worker[0]])
        children = [Child("the engine", _engine(replace(settings, sockets=sockets)))]
        for number, opened in enumerate(by_worker, 1):
            own = WorkerSettings(
                number=number, engine_path=path, sockets=opened, rules=settings.rules
            )
            children.append(Child(f"worker {number}", _worker(own)))

        def tell_ready(told: list[Any]) -> None:
            on_ready(msgspec.convert(told[0], Started))

        Supervisor(children, tell_ready).run()


def _engine(settings: NodeSettings) -> Callable[[Tell], Awaitable[None]]:
    async def main(tell: Tell) -> None:
        try:
            await run_node(settings, lambda started: tell(msgspec.to_builtins(started)))
        except CANNOT_START as problem:
            tell({"problem": str(problem)})

    return main


def _worker(settings: WorkerSettings) -> Callable[[Tell], Awaitable[None]]:
    async def main(tell: Tell) -> None:
        def ready() -> None:
            ShortCollections().begin()
            tell({"pid": os.getpid()})

        await run_worker(settings, ready)

    return main


def _open_metadata(settings: NodeSettings, workers: int) -> list[list[socket.socket]]:
    try:
        return open_for_workers(settings.metadata, workers)
    except OSError as problem:
        raise CannotListen(problem, "--metadata") from problem


def _open_others(settings: NodeSettings, path: str, urls: list[str]) -> WorkerSockets:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.setblocking(False)
    listener.listen(256)
    try:
        control = bound(*settings.control)
    except OSError as problem:
        raise CannotListen(problem, "--control") from problem
    azure, trouble = None, ""
    if settings.azure is not None:
        try:
            azure = bound(*settings.azure)
        except OSError as problem:
            if not settings.is_azure_optional:
                raise CannotListen(problem, "--azure") from problem
            trouble = str(problem.strerror)
    return WorkerSockets(listener, urls, control, azure, trouble)
