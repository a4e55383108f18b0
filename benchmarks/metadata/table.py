"""Prints the results as a table."""

from collections.abc import Mapping

from benchmarks.metadata.long_polls import Cost
from benchmarks.metadata.rounds import SHAPES, Score


def polls(shape: str, scores: Mapping[str, Score]) -> str:
    head = (
        f"{SHAPES[shape]:<30}{'req/CPU-s':>10}{'x nginx':>9}{'x defer':>9}{'x go':>7}"
        f"{'req/s':>9}{'p50 us':>8}{'p99 us':>8}{'load':>6}{'bytes':>7}"
    )
    rows = [
        f"  {name:<28}{score.per_cpu_s:>10,.0f}"
        f"{_ratio(score, scores.get('nginx')):>9}{_ratio(score, scores.get('nginx-deferred')):>9}"
        f"{_ratio(score, scores.get('go')):>7}"
        f"{score.per_s:>9,.0f}{score.p50_us:>8,.0f}{score.p99_us:>8,.0f}"
        f"{score.load:>6.0%}{score.bytes:>7}"
        for name, score in scores.items()
    ]
    return "\n".join([head, *rows])


def waits(connections: int, costs: Mapping[str, Cost]) -> str:
    head = f"{f'{connections:,} long-polls':<30}{'KiB each':>10}{'held':>9}{'RSS before':>12}"
    rows = [
        f"  {name:<28}{cost.bytes_each / 1024:>10.1f}{cost.held:>9,}"
        f"{cost.before_bytes / 2**20:>8.1f} MiB"
        for name, cost in costs.items()
    ]
    return "\n".join([head, *rows])


def _ratio(score: Score, base: Score | None) -> str:
    return "" if base is None else f"{score.per_cpu_s / base.per_cpu_s:.2f}"
