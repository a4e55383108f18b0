"""Plays a whole run: round after round, until the time is up or a promise is broken."""

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairwarning.live_check.checks import NO_BUG, Finding, check
from fairwarning.live_check.disturbances import Disturbance
from fairwarning.live_check.figures import Figures
from fairwarning.live_check.fleet import fleet_toml
from fairwarning.live_check.http import Connection, NoAnswer
from fairwarning.live_check.nodes import CannotServe, Guard, Node
from fairwarning.live_check.records import NodeChange, Recorder, Records
from fairwarning.live_check.rounds import CutOff, Round, RoundSettings
from fairwarning.live_check.world import ANSWER_S_MAX, World

_FLEET_FILE = "fleet.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    load_s: float
    round_s: float
    """How long the load of one round lasts at most. A run has as many rounds as it needs."""
    seed: str
    round: RoundSettings
    keeps_all: bool
    """Whether the records of good rounds are kept too."""


@dataclass(slots=True)
class Outcome:
    figures: Figures
    findings: list[Finding]
    kept: Path | None = None
    """The folder of the round in which a promise was broken."""


class Run:
    def __init__(
        self,
        settings: RunSettings,
        folder: Path,
        nodes: Sequence[Node],
        disturbances: Sequence[Disturbance],
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._nodes = nodes
        self._disturbances = disturbances
        self.records: Records | None = None
        """The records of the current round."""

    async def play(self, stopping: asyncio.Event, tell: Callable[[str], None]) -> Outcome:
        """Plays all rounds. Raises CannotServe if the first round cannot begin."""
        settings = self._settings
        (self._folder / "keys").mkdir(parents=True)
        guard = Guard(self._nodes)
        outcome = Outcome(Figures(), [])
        try:
            await self._begin(guard)
            left_s, number = settings.load_s, 0
            while left_s > 0 and not outcome.findings and not stopping.is_set():
                number += 1
                load_s = min(left_s, settings.round_s)
                left_s -= load_s
                await self._play_round(number, load_s, guard, stopping, outcome)
                count = len(outcome.findings)
                tell(f"round {number}: {f'{count} findings' if count else 'every promise kept'}")
        finally:
            await asyncio.gather(*(node.kill(_ignore_change) for node in self._nodes))
            guard.dismiss()
        return outcome

    async def _begin(self, guard: Guard) -> None:
        first, *others = self._nodes
        await first.start(_ignore_change)
        guard.tell()
        await self._declare(first)
        for node in others:
            await node.start(_ignore_change)
            guard.tell()

    async def _declare(self, node: Node) -> None:
        """Declares the fleet. Raises CannotServe if the store has scopes, which it would remove."""
        connection = Connection(is_kept=False)
        text = fleet_toml(self._folder, self._settings.round.lease_s)
        (self._folder / _FLEET_FILE).write_text(text)
        toml = {"Content-Type": "application/toml"}
        url, path = node.control_url, "/api/v1/fleet"
        try:
            shown = await connection.ask(url, "GET", path, {}, within_s=ANSWER_S_MAX)
            if shown.status != 200 or msgspec.json.decode(shown.body)["scopes"]:
                raise CannotServe("the store has a fleet already; name an empty one with --store")
            made = await connection.ask(
                url, "PUT", path, toml, text.encode(), within_s=ANSWER_S_MAX
            )
        except NoAnswer as problem:
            raise CannotServe(f"the fleet could not be declared: {problem}") from None
        if made.status != 200:
            raise CannotServe(f"the fleet could not be declared: {made.body.decode()}")

    async def _play_round(
        self, number: int, load_s: float, guard: Guard, stopping: asyncio.Event, outcome: Outcome
    ) -> None:
        name = f"round-{number:04}"
        folder = self._folder / name
        recorder = Recorder(folder)
        self.records = recorder.records
        world = World(self._nodes, guard, recorder, f"{self._settings.seed} {name}")
        began_s = time.monotonic()
        findings: list[Finding] = []
        try:
            round = Round(world, name, folder, self._settings.round, self._disturbances)
            await round.play(load_s, stopping)
            findings = check(recorder.records)
        except (CannotServe, CutOff) as problem:
            findings = [Finding(NO_BUG, name, str(problem))]
        finally:
            recorder.close()
        load_s = min(load_s, time.monotonic() - began_s)
        outcome.figures.add(recorder.records, findings, load_s)
        outcome.findings += findings
        if findings:
            outcome.kept = folder
            _write_findings(folder, findings)
        elif not self._settings.keeps_all:
            shutil.rmtree(folder, ignore_errors=True)


def _write_findings(folder: Path, findings: Sequence[Finding]) -> None:
    # It is not called .jsonl, because `read_folder` reads all such files as records.
    with (folder / "findings.json").open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode([each._asdict() for each in findings])))


def _ignore_change(_: NodeChange) -> None:
    """Ignores a change, because it happens before the first round or after the last one."""
