"""Plays the variants of the cluster one after the other, and prints the figures."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from fairwarning.live_check.checks import NO_BUG, Finding
from fairwarning.live_check.console import play, results, tell, tell_line
from fairwarning.live_check.figures import Figures
from fairwarning.live_check.nodes import CannotServe, Node, serve_options
from fairwarning.live_check.rounds import RoundSettings
from fairwarning.live_check.run import Outcome, Run, RunSettings
from tools.cluster import network
from tools.cluster.fault import Cluster, Fault
from tools.cluster.fault_schedule import FaultSchedule
from tools.cluster.options import Options
from tools.cluster.postgres_pair import NotInTime
from tools.cluster.small_disk import SmallDisk
from tools.cluster.variants import VARIANTS, Variant
from tools.cluster.wrong_clock import WrongClock, build_library

_NODES = 3  # One may be away while two others share the work.
_NODE_DISK_MEGABYTES = 64  # Room for the log of a run, and soon filled up.
_END_WITHIN_S = 300.0  # It only ends a hang; the machine may be busy.
_INTERRUPTED = 130


class Suite:
    def __init__(self, options: Options, home: Path) -> None:
        self._options = options
        self._home = home
        self._stopping = asyncio.Event()

    async def play(self) -> int:
        """Plays the chosen variants, prints what they showed, and returns the exit code."""
        options = self._options
        tell_line(f"seed {options.seed}, records in {self._home}")
        network.set_up()
        chosen = [
            each for each in VARIANTS if each.name in options.variants and self._faults_of(each)
        ]
        shares = sum(each.share for each in chosen)
        outcomes: dict[str, Outcome] = {}
        for variant in chosen:
            if self._stopping.is_set():
                break
            load_s = options.load_s * variant.share / shares
            tell_line(f"== {variant.name}: {load_s:.0f} s of load and {_names(variant, options)}")
            try:
                outcomes[variant.name] = await self._play_variant(variant, load_s)
            except asyncio.CancelledError:
                tell_line(f"ended at once and not checked; the records are in {self._home}")
                return _INTERRUPTED
        self._tell(outcomes)
        is_broken = any(each.findings for each in outcomes.values())
        if options.folder is None and not is_broken:
            shutil.rmtree(self._home, ignore_errors=True)
        return int(is_broken)

    def _faults_of(self, variant: Variant) -> list[type[Fault[Any]]]:
        return [each for each in variant.faults if each.name in self._options.only]

    async def _play_variant(self, variant: Variant, load_s: float) -> Outcome:
        folder = self._home / variant.name
        folder.mkdir()
        library = build_library(folder)
        clock = WrongClock(folder / "database.clock", library)
        try:
            with variant.database(folder, clock.environment) as database:
                cluster = self._cluster(folder, database, clock, library)
                return await self._play_cluster(variant, cluster, folder, load_s)
        except (CannotServe, NotInTime) as problem:
            found = Finding(NO_BUG, variant.name, f"it could not be played: {problem}")
            return Outcome(Figures(), [found], folder)

    def _cluster(
        self, folder: Path, database: Any, clock: WrongClock, library: Path
    ) -> Cluster[Any]:
        options, nodes, disks, clocks = self._options, [], [], []
        for number in range(1, _NODES + 1):
            disks.append(SmallDisk(folder / f"node-{number}", _NODE_DISK_MEGABYTES))
            clocks.append(WrongClock(folder / f"node-{number}.clock", library))
            served = serve_options(database.url(number), options.lease_s, options.workers)
            environment = {**clocks[-1].environment, "TMPDIR": str(disks[-1].path)}
            nodes.append(Node(number, disks[-1].path, served, environment))
        return Cluster(
            database=database,
            nodes=nodes,
            node_disks=disks,
            node_clocks=clocks,
            database_clock=clock,
            lease_s=options.lease_s,
        )

    async def _play_cluster(
        self, variant: Variant, cluster: Cluster[Any], folder: Path, load_s: float
    ) -> Outcome:
        options = self._options
        settings = RunSettings(
            load_s=load_s,
            round_s=options.round_s,
            seed=options.seed,
            round=RoundSettings(lease_s=options.lease_s, end_within_s=_END_WITHIN_S),
            keeps_all=options.folder is not None,
        )
        seed = f"{options.seed} {variant.name}"
        faults = FaultSchedule(self._faults_of(variant), cluster, seed, tell_line)
        run = Run(settings, folder, cluster.nodes, [faults])
        try:
            return await play(run, self._stopping)
        finally:
            _keep_logs(cluster, folder)

    def _tell(self, outcomes: dict[str, Outcome]) -> None:
        if self._options.as_json:
            print(json.dumps({name: results(each) for name, each in outcomes.items()}))
            return
        for name, outcome in outcomes.items():
            print(f"== {name}", flush=True)
            tell(outcome, as_json=False)


def _keep_logs(cluster: Cluster[Any], folder: Path) -> None:
    """Copies the nodes' logs from their disks, which are gone when this program ends."""
    for node in cluster.nodes:
        if node.log.exists():
            shutil.copy(node.log, folder)


def _names(variant: Variant, options: Options) -> str:
    return ", ".join(each.name for each in variant.faults if each.name in options.only)
