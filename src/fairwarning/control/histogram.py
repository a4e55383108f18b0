"""A histogram for what happens at every commit.

The library's own looks up its labels and takes a lock for each value and each bucket. Here
all values come from one event loop, so a number in a list is enough.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector


class _Tally:
    __slots__ = ("counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0


class Histogram(Collector):
    def __init__(
        self, name: str, about: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> None:
        """`bounds`: the upper ends of the buckets, in order; one without an end is added."""
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
