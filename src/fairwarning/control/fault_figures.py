"""Faults in the metrics, so that nobody takes a rehearsal for an outage."""

import collections
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from fairwarning.core.faults import FaultKind
from fairwarning.engine.active_faults import Faults


class FaultFigures(Collector):
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
