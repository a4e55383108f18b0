"""Starts real servers, `fairwarning serve` as processes, that share one PostgreSQL."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.postgres import PostgresServer
from tests.support.processes import Served, serving
from tools.postgres import url_of

NODES = 3
TARGETS = {
    "visible": "<= 50 ms",
    "approvals": ">= 0.80",
    "workers": ">= 0.95",
    "kept": ">= 1.05",
    "deferred": ">= 1.15",
    "planning": "<= 1.50",
    "again": "<= 1 s",
}


@contextmanager
def postgres(**settings: str) -> Iterator[PostgresServer]:
    """Runs a PostgreSQL that forces each commit to disk, as for a real fleet."""
    settings = {"fsync": "on", "full_page_writes": "on", "max_connections": "300", **settings}
    server = PostgresServer(programs=None, copied_from=None, **settings)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def new_store(server: PostgresServer) -> str:
    return url_of(server.dsn(server.create_database()))


@contextmanager
def cluster(store: str, *options: str, nodes: int = NODES) -> Iterator[Sequence[Served]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fw-cluster-")))
        found = [
            stack.enter_context(
                serving(
                    "--store", store, "--no-azure", "--empty", "--rate", "0", *options,
                    log=folder / f"{number}.log",
                )
            )
            for number in range(nodes)
        ]  # fmt: skip
        yield found


def row(what: str, figure: str, target: str = "") -> None:
    """Prints a line of the table."""
    print(f"{what:<66}{figure:>24}  {target}", flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]
