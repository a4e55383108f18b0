"""Runs `fairwarning serve --workers N`: a supervisor, the engine's process and N workers."""

import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import msgspec

from fairwarning.cli.ready_message import Started
from fairwarning.cli.run_node import CANNOT_START, run_node
from fairwarning.common.garbage_collection import ShortCollections
from fairwarning.common.systemd import leave_socket
from fairwarning.metadata.server import url_of
from fairwarning.node import CannotListen, NodeSettings, WorkerSockets
from fairwarning.operator_api.server import bound
from fairwarning.workers.children import Child, Tell, kill
from fairwarning.workers.reload import HandedOver, is_trial, load_anew, take_over
from fairwarning.workers.shared_addresses import open_for_workers
from fairwarning.workers.supervisor import Supervisor
from fairwarning.workers.worker import WorkerSettings, run_worker

WORKERS_MAX = 64  # More processes than most machines have cores.
ENGINE = "the engine"


def serve_with_workers(
    settings: NodeSettings, workers: int, on_ready: Callable[[Started], None]
) -> None:
    """Run the server until SIGTERM or SIGINT. Raises CannotListen or CannotStart."""
    if is_trial():
        return
    handed = take_over()
    folder = handed.folder or tempfile.mkdtemp(prefix="fairwarning-")  # Only this user can open it.
    try:
        path = f"{folder}/engine.sock"
        by_worker = _open_metadata(settings, workers, handed)
        urls = [url_of(each) for each in by_worker[0].values()]
        sockets = _open_others(settings, path, urls, handed)
        handed.close_rest()
        opened = {"engine": sockets.workers, "control": sockets.control}
        if sockets.azure is not None:
            opened["azure"] = sockets.azure
        for each in by_worker:
            opened.update(each)
        for key, opened_socket in opened.items():
            # Nobody can connect to this one after a restart, because its folder is gone.
            if key != "engine":
                leave_socket(key, opened_socket)
        children = [Child(ENGINE, _engine(replace(settings, sockets=sockets)), is_alone=True)]
        for number, own in enumerate(by_worker, 1):
            worker = WorkerSettings(
                number=number, engine_path=path, sockets=[*own.values()], rules=settings.rules
            )
            children.append(Child(f"worker {number}", _worker(worker)))
        for child in children:
            child.old_pid = handed.pids.pop(child.name, 0)
        # What is left are workers that are no longer wanted.
        for pid in handed.pids.values():
            kill(pid, signal.SIGQUIT)
        life = handed.life or os.pipe()
        Supervisor(
            children,
            on_ready=lambda told: on_ready(msgspec.convert(told[ENGINE], Started)),
            on_reload=partial(load_anew, opened, folder, life),
            life=life,
            retired=[*handed.retired, *handed.pids.values()],
        ).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _open_metadata(
    settings: NodeSettings, workers: int, handed: HandedOver
) -> list[dict[str, socket.socket]]:
    try:
        return open_for_workers(settings.metadata, workers, handed.socket)
    except OSError as problem:
        raise CannotListen(problem, "--metadata") from problem


def _open_others(
    settings: NodeSettings, path: str, urls: list[str], handed: HandedOver
) -> WorkerSockets:
    listener = handed.socket("engine", partial(_unix_listener, path))
    try:
        control = handed.socket("control", partial(bound, *settings.control))
    except OSError as problem:
        raise CannotListen(problem, "--control") from problem
    azure, trouble = None, ""
    if settings.azure is not None:
        try:
            azure = handed.socket("azure", partial(bound, *settings.azure))
        except OSError as problem:
            if not settings.is_azure_optional:
                raise CannotListen(problem, "--azure") from problem
            trouble = str(problem.strerror)
    return WorkerSockets(listener, urls, control, azure, trouble)


def _unix_listener(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.setblocking(False)
    listener.listen(WORKERS_MAX)
    return listener
