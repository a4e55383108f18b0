"""Our histogram reads as the library's own does."""

import prometheus_client
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from fairwarning.operator_api.metrics import Histogram

BOUNDS = (0.0005, 0.25, 1, 60, 3600)
values = st.floats(0, 10_000) | st.sampled_from(BOUNDS)


@given(st.lists(st.tuples(values, st.sampled_from(["Freeze", "Reboot"]))))
def test_by_label(observed: list[tuple[float, str]]) -> None:
    mine, theirs = CollectorRegistry(), CollectorRegistry()
    own = Histogram("notice_seconds", "Of notice", ["type"], bounds=BOUNDS)
    mine.register(own)
    other = prometheus_client.Histogram(
        "notice_seconds", "Of notice", ["type"], buckets=BOUNDS, registry=theirs
    )
    for value, label in sorted(observed, key=lambda pair: pair[1]):
        own.observe(value, label)
        other.labels(label).observe(value)
    assert generate_latest(mine) == generate_latest(theirs)


@given(st.lists(values))
def test_without_labels_it_is_there_from_the_start(observed: list[float]) -> None:
    mine, theirs = CollectorRegistry(), CollectorRegistry()
    own = Histogram("took_seconds", "Time", bounds=BOUNDS)
    mine.register(own)
    other = prometheus_client.Histogram("took_seconds", "Time", buckets=BOUNDS, registry=theirs)
    for value in observed:
        own.observe(value)
        other.observe(value)
    assert generate_latest(mine) == generate_latest(theirs)
