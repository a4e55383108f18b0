"""Plays scenarios that are started from a page, one at a time, and keeps the last few runs.

The player is blocking code, so it runs in a thread of its own. Its requests are answered in the
event loop, in the name of the person who started the scenario and under that person's role.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import msgspec

from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.dispatch import as_problem
from fairwarning.operator_api.problems import Problem
from fairwarning.portal.api import Api
from fairwarning.scenarios import library
from fairwarning.scenarios.clock_control import SpeedNotAllowed, choose_clock_control
from fairwarning.scenarios.instance_mapping import instances_of, replace_instances
from fairwarning.scenarios.model import Json, RequestRefused, Scenario
from fairwarning.scenarios.parse import read_scenario
from fairwarning.scenarios.play import Player, ReportLine, StepFailed

RUNS_KEPT = 5  # As many as a page shows without scrolling.
LINES_MAX = 500  # A run that reports more would make the page too long to read.


class _Stopped(Exception):
    """Somebody has stopped the scenario, or the server is stopping."""


@dataclass(slots=True, kw_only=True)
class Run:
    name: str
    title: str
    instances: tuple[str, ...]
    by: str
    state: str = "playing"
    """The state: `playing`, and later `ended`, `unmet`, `failed` or `stopped`."""
    trouble: str = ""
    """Why the run failed; empty if it did not fail."""
    told: list[ReportLine] = field(default_factory=list)


class ScenarioRunner:
    def __init__(self, api: Api, stopping: asyncio.Event) -> None:
        self._api = api
        self._stopping = stopping
        self._halt = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self.runs: deque[Run] = deque(maxlen=RUNS_KEPT)
        """The last runs, newest first."""

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def glance(self) -> object:
        """Return a value that changes whenever a run has something new to show."""
        return [(each.state, len(each.told)) for each in self.runs]

    def begin(
        self,
        name: str,
        scenario: Scenario,
        roles: Mapping[str, str],
        speed: float | None,
        caller: Caller,
        is_allowed: Callable[[Json], bool],
    ) -> None:
        """Start a scenario. `is_allowed` says for the scope of each instance if it may be used.

        Raises Problem if another scenario is playing.
        """
        if self.is_busy:
            raise Problem(409, "scenario-under-way", "a scenario is being played; stop it first")
        scenario = replace_instances(scenario, roles)
        run = Run(name=name, title=scenario.title, instances=instances_of(scenario), by=caller.name)
        self._halt = threading.Event()
        operator = _Operator(self._api, caller, f"scenario {name}", self._halt)
        self.runs.appendleft(run)

        def play() -> None:
            _play(run, scenario, operator, speed, is_allowed)

        self._task = asyncio.create_task(self._perform(play))

    def halt(self) -> None:
        self._halt.set()

    async def _perform(self, play: Callable[[], None]) -> None:
        """Run `play` in a thread, and stop it if the server stops."""
        playing = asyncio.ensure_future(asyncio.to_thread(play))
        ending = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({playing, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._halt.set()
            ending.cancel()
            await playing


def _play(
    run: Run,
    scenario: Scenario,
    operator: "_Operator",
    speed: float | None,
    is_allowed: Callable[[Json], bool],
) -> None:
    def tell(told: ReportLine) -> None:
        if len(run.told) < LINES_MAX:
            run.told.append(told)

    try:
        scopes = _scopes(operator, scenario, is_allowed)
        player = Player(
            operator, choose_clock_control(operator, speed, operator.sleep), tell, scopes
        )
        player.play(scenario)
        run.state = "unmet" if player.unmet else "ended"
    except _Stopped:
        run.state = "stopped"
    except (RequestRefused, SpeedNotAllowed, StepFailed) as trouble:
        run.state, run.trouble = "failed", str(trouble)


def _scopes(
    operator: "_Operator", scenario: Scenario, is_allowed: Callable[[Json], bool]
) -> dict[str, str]:
    """Return the scope of each instance in the scenario.

    Raises RequestRefused if an instance does not exist, or `is_allowed` returns False.
    """
    found: dict[str, str] = {}
    for name in instances_of(scenario):
        found[name] = operator.get("instances", name)["scope"]
        if not is_allowed(operator.get("scopes", found[name])):
            raise RequestRefused(
                f"{name} is in no test fleet, and this server's clock is the real one; choose an "
                "instance of a test fleet"
            )
    return found


class _Operator:
    """The operator API, as the player's thread calls it."""

    def __init__(self, api: Api, caller: Caller, why: str, halt: threading.Event) -> None:
        self._api = api
        self._caller = caller
        self._why = why
        self._halt = halt
        self._loop = asyncio.get_running_loop()

    def get(self, *path: str, **params: Any) -> Json:
        return self._ask("GET", path, query=params)

    def post(self, *path: str, body: Json | None = None) -> Json:
        if self._halt.is_set():
            raise _Stopped
        return self._ask("POST", path, body=body, why=self._why)

    def delete(self, *path: str) -> Json:
        """Send a DELETE. This works even after a stop, so that faults can be cleared."""
        return self._ask("DELETE", path, why=self._why)

    def sleep(self, seconds: float) -> None:
        if self._halt.wait(seconds):
            raise _Stopped

    def _ask(self, method: str, path: tuple[str, ...], **more: Any) -> Json:
        template, names = self._api.find(method, path)
        asked = self._api.ask(self._caller, method, template, names=names, **more)
        return asyncio.run_coroutine_threadsafe(_answer(asked), self._loop).result()


async def _answer(asked: Coroutine[Any, Any, Any]) -> Json:
    try:
        found: Json = msgspec.to_builtins(await asked)
    except Exception as error:
        problem = as_problem(error)
        raise RequestRefused(problem.detail, status=problem.status) from None
    return found


class BundledScenario(NamedTuple):
    """A scenario that comes with the program."""

    name: str
    scenario: Scenario
    instances: tuple[str, ...]
    """The instances that the scenario uses, unless the user chooses others."""


@cache
def bundled_scenarios() -> tuple[BundledScenario, ...]:
    found = ((name, read_scenario(library.text(name))) for name in library.names())
    return tuple(BundledScenario(name, each, instances_of(each)) for name, each in found)


def find_scenario(name: str) -> BundledScenario | None:
    return next((each for each in bundled_scenarios() if each.name == name), None)
