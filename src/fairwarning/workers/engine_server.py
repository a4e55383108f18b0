"""The engine's process answers the calls of its workers, and tells them about every change.

A worker keeps one connection to a Unix socket. Whatever the engine's process shows is sent on it in
the same order, and before the answer to a call that came after the change.
"""

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from fairwarning import __version__
from fairwarning.core.model import Scope, ScopeId
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Clock, DocumentStore, within
from fairwarning.engine.service import Engine
from fairwarning.engine.step_back import StepBack
from fairwarning.metadata.request_watchers import Watcher
from fairwarning.workers import messages as m
from fairwarning.workers.messages import Frame, Kind

PAGE_SCOPES_MAX = 50  # Encoding so many takes some milliseconds, and commits wait meanwhile.
WAITING_BYTES_MAX = 64 * 1024 * 1024
"""A worker that reads its news so slowly is cut off. It connects again and reads all scopes."""
AGE_S = 1.0
"""The time between two messages about the age of the documents."""
SAMPLE_S = 5.0
"""The time between two counts of polls, as in a node without workers."""

_log = logging.getLogger(__name__)
Answer = Callable[[Any], Awaitable[object]]


class ConnectedWorker:
    """One worker as the engine's process knows it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.number = 0
        self.pid = 0
        self.connections = 0

    def send(self, frame: bytes) -> None:
        """Send a frame. A worker that does not read is cut off."""
        transport = self._writer.transport
        if transport.get_write_buffer_size() > WAITING_BYTES_MAX:
            _log.warning("worker %d reads too slowly and is cut off", self.number)
            self.cut_off()
        elif not transport.is_closing():
            self._writer.write(frame)

    def cut_off(self) -> None:
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return  # It was cut off, which is an end, too.


class EngineServer:
    """Serves the workers of this node. It has the same methods as a `MetadataServer`."""

    def __init__(
        self,
        listener: socket.socket,
        urls: list[str],
        engine: Engine,
        views: Views,
        store: DocumentStore,
        clock: Clock,
        *,
        store_s_max: float | None = None,
    ) -> None:
        """`store_s_max` limits how long a call of a worker waits for the store."""
        self._store_s_max = store_s_max
        self._listener = listener
        self.urls = urls
        self._engine = engine
        self._views = views
        self._store = store
        self._clock = clock
        self._workers: dict[ConnectedWorker, None] = {}
        self._counted: dict[tuple[int, int], int] = {}
        """The answers of each process, by the number of its worker and its id. Earlier processes of
        a worker count too, so its counter never falls. A process that was cut off calls again with
        all its answers, so what it reported before does not count twice.
        """
        self._pids: dict[int, int] = {}
        """The last process of each worker."""
        self.worker_starts: dict[int, int] = {}
        """How many processes of each worker have called, by the number of the worker."""
        self._watchers: list[Watcher] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: asyncio.Task[None] | None = None
        self._answers: Mapping[str, tuple[m.Call[Any, Any], Answer]] = {
            call.name: (call, answer)
            for call, answer in (
                (m.READ, self._read),
                (m.SCOPES, self._scopes),
                (m.FIND_EVENT, self._find_event),
                (m.JOURNAL, self._journal),
                (m.HISTORY, self._history),
                (m.SUBMIT, self._submit),
                (m.CHECK_PAST, self._check_past),
            )
        }
        views.on_shown = self._on_shown
        views.on_era = self._on_era

    def start(self) -> None:
        self._running = asyncio.create_task(self._run(), name="server of the workers")

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        # The answers to calls under way are sent before the connections end.
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in list(self._workers):
            await worker.close()

    def count_answers(self) -> dict[str, int]:
        """Return how many responses each worker has sent since this process started."""
        counts = Counter[int]()
        for (number, _), answers in self._counted.items():
            counts[number] += answers
        return {str(number): count for number, count in sorted(counts.items())}

    def watch(self, watcher: Watcher, *, hears_refused: bool = False) -> None:
        """Call the watcher for every request to a worker from now on, refused approvals too."""
        assert hears_refused, "workers tell about refused approvals, too"
        self._watchers.append(watcher)
        self._tell(m.WATCH, True)

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.remove(watcher)
        self._tell(m.WATCH, bool(self._watchers))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = ConnectedWorker(writer)
        self._workers[worker] = None
        try:
            while (frame := await m.receive(reader)) is not None:
                if frame.kind is Kind.CALL:
                    # Even if the worker is gone, a change that it has asked for is made.
                    task = asyncio.create_task(self._answer(worker, frame))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                else:
                    self._take_news(worker, frame)
        finally:
            del self._workers[worker]
            await worker.close()

    async def _answer(self, worker: ConnectedWorker, frame: Frame) -> None:
        call, answer = self._answers[frame.name]
        try:
            result = await within(self._store_s_max, answer(call.argument.decode(frame.body)))
            given = Frame(Kind.ANSWER, frame.name, frame.number, m.encode(result))
        except Exception as error:
            given = m.failure(frame, error)
            if given.kind is Kind.BROKEN:
                _log.exception("the call %s of worker %d broke", frame.name, worker.number)
        worker.send(m.to_bytes(given))

    def _take_news(self, worker: ConnectedWorker, frame: Frame) -> None:
        if frame.name == m.HELLO.name:
            hello = m.HELLO.content.decode(frame.body)
            worker.number, worker.pid = hello.number, hello.pid
            if self._pids.get(hello.number) != hello.pid:
                # The same process also calls again after it was cut off.
                self._pids[hello.number] = hello.pid
                self.worker_starts[hello.number] = self.worker_starts.get(hello.number, 0) + 1
            if hello.version != __version__:
                # It is of the program before a reload, and will be replaced in a moment.
                worker.cut_off()
            if self._watchers:
                worker.send(_news(m.WATCH, True))
        elif frame.name == m.OBSERVED.name:
            for watcher in self._watchers:
                watcher(m.OBSERVED.content.decode(frame.body))
        elif frame.name == m.REPORT.name:
            report = m.REPORT.content.decode(frame.body)
            self._counted[worker.number, worker.pid] = report.answers
            worker.connections = report.connections
            for polled in report.polled:
                member = self._views.member(polled.scope_id, polled.name)
                if member is not None:
                    member.polls += polled.polls
                    member.agent = polled.agent
            self._views.note_asked(report.asked)

    async def _run(self) -> None:
        """Accept workers, tell them how old the documents are, and count their polls."""
        async with await asyncio.start_unix_server(self._serve, sock=self._listener):
            sampled_s = time.monotonic()
            while True:
                await asyncio.sleep(AGE_S)
                self._tell(m.AGE, self._engine.documents_age_s())
                now_s = time.monotonic()
                if now_s - sampled_s >= SAMPLE_S:
                    self._views.sample(self._clock.now() / 1000, now_s - sampled_s)
                    sampled_s = now_s

    def _on_shown(self, scope: Scope) -> None:
        if self._workers:
            self._tell(m.SHOWN, scope)

    def _on_era(self, step_back: StepBack) -> None:
        self._tell(m.STEPPED_BACK, m.SteppedBack(step_back.common_ms, sorted(step_back.lost)))

    def _tell(self, news: m.News[Any], content: object) -> None:
        frame = _news(news, content)
        for worker in list(self._workers):
            worker.send(frame)

    async def _read(self, scope_id: ScopeId) -> Scope:
        return await self._store.read(scope_id)

    async def _scopes(self, page: m.PageAfter) -> list[Scope]:
        limit = min(page.limit, PAGE_SCOPES_MAX)
        return await self._store.scopes(after=page.after, limit=limit)

    async def _find_event(self, event_id: Any) -> object:
        return await self._store.find_event(event_id)

    async def _journal(self, page: m.JournalPage) -> list[m.WireEntry]:
        assert page.position is not None
        entries = await self._store.journal(
            after=page.position, limit=page.limit, inclusive=page.is_inclusive
        )
        return [m.WireEntry.of(each) for each in entries]

    async def _history(self, page: m.JournalPage) -> list[m.WireEntry]:
        entries = await self._store.history(before=page.position, limit=page.limit)
        return [m.WireEntry.of(each) for each in entries]

    async def _submit(self, given: m.Submission) -> m.Submitted:
        command = m.command_of(given)
        receipt = await self._engine.submit(given.scope_id, command, by=given.by)
        # The signal of another node's change may not be here yet, and the worker needs it now.
        self._views.put(receipt.scope)
        return m.Submitted(receipt.scope, receipt.at_ms)

    async def _check_past(self, _: None) -> None:
        await self._engine.check_past()


class WorkerMetrics(Collector):
    """Shows how often workers were started, so that one that ends again and again is noticed."""

    def __init__(self, server: EngineServer) -> None:
        self._server = server

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily(
            "fairwarning_worker_starts", "Starts of each worker since this process began",
            labels=["worker"],
        )  # fmt: skip
        for number, count in sorted(self._server.worker_starts.items()):
            family.add_metric([str(number)], count)
        yield family


def _news(news: m.News[Any], content: object) -> bytes:
    return m.to_bytes(Frame(Kind.NEWS, news.name, body=m.encode(content)))
