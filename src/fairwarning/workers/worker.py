"""A worker is a process that only answers polls, on sockets that it shares with nobody.

It keeps its own copy of all documents. Approvals and activations go to the engine's process. While
that process or the store is away, the worker goes on answering polls with what it has.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairwarning import __version__
from fairwarning.core.commands import BeginAnew
from fairwarning.core.model import ENGINE, Scope, ScopeId
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.journal_reader import JournalReader, PastChanged
from fairwarning.engine.protocols import Receipt, Signal, StoreDown
from fairwarning.engine.step_back import StepBack
from fairwarning.metadata.endpoint_state import EndpointState
from fairwarning.metadata.handlers import Handlers
from fairwarning.metadata.request_watchers import ObservedRequest
from fairwarning.metadata.server import MetadataServer
from fairwarning.metadata.settings import KEEP_ALIVE_S, EndpointRules
from fairwarning.workers import messages as m
from fairwarning.workers.remote_store import EngineLink, RemoteEngine, RemoteStore

MARK_EVERY_S = 2.0
"""How often a worker remembers the newest entry of the journal, to notice a lost past later."""
POLLED_PER_REPORT_MAX = 1_000  # So that the engine's process is not busy with one report for long.
DRAIN_S_MAX = KEEP_ALIVE_S
"""How long open connections may last after the stop. Silent ones end by themselves until then."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    number: int
    """The number of the worker, from 1 on."""
    engine_path: str
    """The Unix socket of the engine's process."""
    sockets: Sequence[socket.socket]
    rules: EndpointRules


class Worker:
    def __init__(self, settings: WorkerSettings) -> None:
        clock = SystemClock()
        hello = m.Hello(settings.number, os.getpid(), __version__)
        self._link = EngineLink(settings.engine_path, hello)
        self._store = RemoteStore(self._link)
        engine = RemoteEngine(self._link)
        self._views = Views(self._store, self._begin_anew)
        self._engine = engine
        engine.on_receipt = lambda receipt: self._views.put(receipt.scope)
        # The engine's process limits the wait for the store. It may be restarted meanwhile.
        rules = replace(settings.rules, store_s_max=None)
        handlers = Handlers(engine, self._views, self._store, clock, rules)
        self._complete_s = asyncio.get_running_loop().time()
        """Up to when the documents are known to be complete, by the event loop's clock."""
        self._state = EndpointState(
            self._views, handlers, settings.rules, Faults(clock), self._age_s
        )
        self._server = MetadataServer(self._state, settings.sockets)
        self._server.on_sample = self._report
        self._marks = JournalReader(self._store)
        self._is_watched = False
        self._is_loaded = asyncio.Event()
        self._marking: asyncio.Task[None] | None = None
        self._reloading: asyncio.Task[None] | None = None
        self._link.hear(m.SHOWN, self._on_shown)
        self._link.hear(m.AGE, self._on_age)
        self._link.hear(m.STEPPED_BACK, self._on_step_back)
        self._link.hear(m.WATCH, self._on_watch)
        self._link.on_connected = self._load

    async def start(self) -> None:
        """Return when the worker answers polls. It waits for the engine's process."""
        self._link.start()
        await self._is_loaded.wait()
        self._server.start()
        self._marking = asyncio.create_task(self._remember_marks(), name="marks of the journal")

    async def stop(self, drain_s: float = 0) -> None:
        if drain_s:
            await self._server.drain(drain_s)
        await self._server.stop()
        self._report(0, 0)
        tasks = [each for each in (self._marking, self._reloading) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._views.close()
        await self._link.stop()

    async def _begin_anew(self, scope_id: ScopeId, command: BeginAnew) -> Receipt:
        return await self._engine.submit(scope_id, command, by=ENGINE)

    def _on_shown(self, scope: Scope) -> None:
        self._views.on_signal(Signal(scope_id=scope.id, next_deadline_ms=None, scope=scope))

    def _on_age(self, age_s: float) -> None:
        # Until all scopes are read after a new connection, the documents may be older than this.
        if self._link.away_since_s is None:
            self._complete_s = asyncio.get_running_loop().time() - age_s

    def _age_s(self) -> float:
        return asyncio.get_running_loop().time() - self._complete_s

    def _on_step_back(self, news: m.SteppedBack) -> None:
        self._begin_era(StepBack(common_ms=news.common_ms, lost=frozenset(news.lost)))

    def _begin_era(self, step_back: StepBack) -> None:
        self._views.begin_era(step_back)
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload(), name="reading after a step back")

    async def _reload(self) -> None:
        while self._views.is_reloading:
            try:
                await self._views.reload()
            except StoreDown:
                # The connection may be lost; then all scopes are read after the next one, too.
                await asyncio.sleep(MARK_EVERY_S)

    async def _load(self) -> None:
        """Read all scopes. If the store has lost something since the last connection, begin a new
        era, as a node does that was running all the time.
        """
        try:
            await self._marks.page(1)
        except PastChanged:
            self._begin_era(StepBack(common_ms=None, lost=frozenset()))
        await self._views.load()
        if self._views.contradicted:
            self._begin_era(StepBack(common_ms=None, lost=frozenset(self._views.contradicted)))
        await self._mark()
        self._is_loaded.set()

    async def _remember_marks(self) -> None:
        while True:
            await asyncio.sleep(MARK_EVERY_S)
            try:
                await self._mark()
            except StoreDown:
                continue  # The last mark stays the one to compare with.

    async def _mark(self) -> None:
        await self._marks.begin_at_end(1)

    def _on_watch(self, is_on: bool) -> None:
        if is_on and not self._is_watched:
            self._server.watch(self._tell_observed, hears_refused=True)
        elif not is_on and self._is_watched:
            self._server.unwatch(self._tell_observed)
        self._is_watched = is_on

    def _tell_observed(self, observed: ObservedRequest) -> None:
        self._link.tell(m.OBSERVED, observed)

    def _report(self, _now_s: float, _since_s: float) -> None:
        """Tell the engine's process what was counted, in parts."""
        polled = [
            m.Polled(member.view.scope_id, member.name, polls, member.agent)
            for member, polls in self._views.take_polls()
        ]
        asked = []
        for view in self._views.asked():
            asked.append(view.scope_id)
            view.is_asked = False
        answers, connections = self._server.count_answers()[""], len(self._state.connections)
        for first in range(0, max(1, len(polled)), POLLED_PER_REPORT_MAX):
            part = polled[first : first + POLLED_PER_REPORT_MAX]
            self._link.tell(m.REPORT, m.Report(answers, connections, part, asked))
            asked = []


async def run_worker(settings: WorkerSettings, on_ready: Callable[[], None]) -> None:
    """Run a worker until SIGTERM, which ends it at once, or SIGQUIT, which lets it end with the
    last of its open connections.
    """
    stopping, drain_s = asyncio.Event(), 0.0

    def stop(within_s: float) -> None:
        nonlocal drain_s
        drain_s = within_s
        stopping.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop, 0.0)
    loop.add_signal_handler(signal.SIGQUIT, stop, DRAIN_S_MAX)
    worker = Worker(settings)
    starting = asyncio.create_task(worker.start())
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        await starting
        on_ready()
        await stopped
    else:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    await worker.stop(drain_s)
