"""The metrics of a node, in Prometheus' format.

Counters and histograms count this node's own commits and requests. Gauges of the whole fleet are
read from the store at each request, so all nodes give the same answer.
"""

import asyncio
import collections
import itertools
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from fairwarning.core.faults import FaultKind
from fairwarning.core.model import EventType, Phase
from fairwarning.core.transitions import Approved, Started, Transition
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.protocols import Receipt, Store, StoreDown
from fairwarning.engine.service import Engine

# The minimum notices of Azure (30 s, 5, 10 and 15 min), and times around them.
_NOTICE_S = (0, 30, 60, 300, 600, 900, 1800, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600)
# From a commit in memory to one that keeps callers waiting.
_STORE_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Counts(Collector):
    """Plain integer counters, for frequent events: looking up a label each time is too slow."""

    def __init__(
        self, count_polls: Callable[[], Mapping[str, int]], count_step_backs: Callable[[], int]
    ) -> None:
        self._count_polls = count_polls
        self._count_step_backs = count_step_backs
        self.transitions: defaultdict[type[Transition], int] = defaultdict(int)

    def collect(self) -> Iterable[CounterMetricFamily]:
        yield self._answers()
        yield CounterMetricFamily(
            "fairwarning_store_step_backs",
            "How often the store was found to have lost some of its past",
            self._count_step_backs(),
        )
        family = CounterMetricFamily(
            "fairwarning_transitions", "Transitions committed by this node", labels=["kind"]
        )
        for kind, count in sorted(self.transitions.items(), key=lambda item: item[0].__name__):
            family.add_metric([kind.__name__], count)
        yield family

    def _answers(self) -> CounterMetricFamily:
        name, about = "fairwarning_metadata_answers", "Answers of the metadata endpoint"
        counts = self._count_polls()
        if "" in counts:
            return CounterMetricFamily(name, about, counts[""])
        family = CounterMetricFamily(name, about, labels=["worker"])
        for worker, count in counts.items():
            family.add_metric([worker], count)
        return family


class Metrics:
    def __init__(
        self,
        count_polls: Callable[[], Mapping[str, int]],
        count_step_backs: Callable[[], int] = lambda: 0,
    ) -> None:
        self.registry = registry = CollectorRegistry()
        self._events = Gauge(
            "fairwarning_events", "Events by type and phase", ["type", "phase"], registry=registry
        )
        self._approval = Histogram(
            "fairwarning_approval_seconds", "From announcement to approval", ["type"],
            bounds=_NOTICE_S,
        )  # fmt: skip
        self._notice = Histogram(
            "fairwarning_notice_seconds", "From announcement to start", ["type", "cause"],
            bounds=_NOTICE_S,
        )  # fmt: skip
        self._late = Counter(
            "fairwarning_late_starts", "Starts a second or more after they were possible", ["type"],
            registry=registry,
        )  # fmt: skip
        self._requests = Counter(
            "fairwarning_control_requests", "Requests to the control plane",
            ["method", "path", "status"], registry=registry,
        )  # fmt: skip
        self._request_s = Histogram(
            "fairwarning_control_request_seconds", "Time to answer", bounds=_STORE_S
        )
        self._store_s = Histogram(
            "fairwarning_store_transaction_seconds", "Time of a store transaction", bounds=_STORE_S
        )
        for histogram in (self._approval, self._notice, self._request_s, self._store_s):
            registry.register(histogram)
        self._counts = _Counts(count_polls, count_step_backs)
        registry.register(self._counts)
        self._deadline = Gauge(
            "fairwarning_next_deadline_timestamp_seconds", "When time matters next; NaN if never",
            registry=registry,
        )  # fmt: skip
        self._overdue = Gauge(
            "fairwarning_overdue_scopes", "Scopes whose deadline has passed", registry=registry
        )
        self._store_up = Gauge(
            "fairwarning_store_up", "1 if the store answers and could be written to, 0 if not",
            registry=registry,
        )  # fmt: skip
        self._engine_running = Gauge(
            "fairwarning_engine_running", "1 if a node with the role engine is running, 0 if none",
            registry=registry,
        )  # fmt: skip
        self._age = Gauge(
            "fairwarning_documents_age_seconds", "How old the documents that are served may be",
            registry=registry,
        )  # fmt: skip
        started = Gauge(
            "fairwarning_start_time_seconds", "When this process started, as a Unix time",
            registry=registry,
        )  # fmt: skip
        started.set_to_current_time()
        self._signals_up = Gauge(
            "fairwarning_store_signals_up", "1 if the store announces changes, 0 if it is polled",
            registry=registry,
        )  # fmt: skip
        self._feed_delay = Gauge(
            "fairwarning_change_feed_held_back_seconds",
            "How long a transaction of another program has held back the oldest change",
            registry=registry,
        )
        self._answered_s = time.monotonic()
        """When the store last answered; before that, when this node started."""

    def note_request(self, method: str, path: str, status: int, took_s: float) -> None:
        self._requests.labels(method, path.replace(":path}", "}"), str(status)).inc()
        self._request_s.observe(took_s)

    def note_commit(self, receipt: Receipt, took_s: float) -> None:
        self._store_s.observe(took_s)
        self._answered_s = time.monotonic()
        for transition in receipt.transitions:
            self._counts.transitions[type(transition)] += 1
            if isinstance(transition, Approved):
                event = receipt.scope.events.get(transition.event_id)
                if event is not None:
                    waited_ms = transition.at_ms - event.created_ms
                    self._approval.observe(waited_ms / 1000, event.type.value)
            elif isinstance(transition, Started):
                self._note_start(receipt, transition)

    def _note_start(self, receipt: Receipt, started: Started) -> None:
        event = receipt.scope.events.get(started.event_id)
        if event is None:
            return
        given_ms = started.at_ms - event.created_ms
        self._notice.observe(given_ms / 1000, event.type.value, started.cause.value)
        if started.late_ms:
            self._late.labels(event.type.value).inc()

    async def render(
        self,
        store: Store,
        engine: Engine,
        within_s: float,
        *,
        can_write: bool,
        has_engine: bool = True,
    ) -> bytes:
        """Return all metrics. If the store is down, the metrics that it provides are left out.

        `within_s` limits the wait for the store. `can_write` says whether the last test write
        to the store succeeded, and `has_engine` whether a node with the role engine is running.
        """
        self._engine_running.set(has_engine)
        try:
            async with asyncio.timeout(within_s):
                await self._ask(store)
        except (StoreDown, TimeoutError):
            self._events.clear()
            self._deadline.set(float("nan"))
            self._overdue.set(float("nan"))
            self._store_up.set(0)
        else:
            self._store_up.set(can_write)
            self._answered_s = time.monotonic()
        self._signals_up.set(store.condition.hears_signals)
        self._feed_delay.set(store.condition.feed_delay_s)
        lag_s = engine.views_lag_s
        since_s = time.monotonic() - self._answered_s
        self._age.set(lag_s if lag_s is not None else since_s)
        return generate_latest(self.registry)

    async def _ask(self, store: Store) -> None:
        counts = await store.count_events()
        due = await store.due(1_000)
        for kind in itertools.product(EventType, Phase):
            self._events.labels(*kind).set(counts.get(kind, 0))
        soonest = due.now_ms if due.scope_ids else due.next_deadline_ms
        self._deadline.set(float("nan") if soonest is None else soonest / 1000)
        self._overdue.set(len(due.scope_ids))


class _Tally:
    __slots__ = ("counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0


class Histogram(Collector):
    """A histogram that is cheap enough to be updated at every commit."""

    def __init__(
        self, name: str, about: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> None:
        """`bounds` are the upper limits of the buckets, ascending. An unlimited one is added."""
        self._name, self._about, self._labels = name, about, labels
        self._bounds = bounds
        self._tallies: dict[tuple[str, ...], _Tally] = {}
        if not labels:
            self._tallies[()] = _Tally(bounds)

    def observe(self, value: float, *labels: str) -> None:
        tally = self._tallies.get(labels)
        if tally is None:
            tally = self._tallies[labels] = _Tally(self._bounds)
        tally.counts[bisect_left(self._bounds, value)] += 1
        tally.total += value

    def collect(self) -> Iterable[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._about, labels=self._labels)
        ends = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for labels, tally in sorted(self._tallies.items()):
            buckets = list(zip(ends, accumulate(tally.counts), strict=True))
            family.add_metric(labels, buckets, tally.total)
        yield family


class FaultMetrics(Collector):
    """Counts injected faults, so that a rehearsal is not mistaken for an outage."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        counts = collections.Counter(each.kind for each in self._faults.list())
        is_set = GaugeMetricFamily(
            "fairwarning_faults_set", "Faults that are set on the endpoint", labels=["kind"]
        )
        struck = CounterMetricFamily(
            "fairwarning_faults_struck", "Answers that were wrong on purpose", labels=["kind"]
        )
        for kind in FaultKind:
            is_set.add_metric([kind], counts[kind])
            struck.add_metric([kind], self._faults.struck.get(kind, 0))
        yield is_set
        yield struck
