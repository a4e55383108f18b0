"""Plays the scenario of `fairwarning scenario run`, on a running server or on a private one."""

import difflib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import Struct

from fairwarning.boot import BadStoreUrl
from fairwarning.cli.common_options import Session, connect
from fairwarning.cli.scenario_output import ScenarioPrinter, pending_line
from fairwarning.common.command_errors import Problem, bad_file
from fairwarning.common.escape import counted
from fairwarning.common.text_files import read_text
from fairwarning.core.commands import Activate
from fairwarning.core.model import ENGINE
from fairwarning.core.refusals import Refused
from fairwarning.drivers import plugins
from fairwarning.fleet_file.model import Fleet
from fairwarning.fleet_file.read import read_json
from fairwarning.metadata.request_watchers import ObservedRequest
from fairwarning.node import CannotListen, Node, NodeSettings
from fairwarning.scenarios import library
from fairwarning.scenarios.clock_control import SpeedNotAllowed, choose_clock_control
from fairwarning.scenarios.instance_mapping import instances_of, replace_instances
from fairwarning.scenarios.model import Json, RequestRefused, Scenario, ScenarioProblem
from fairwarning.scenarios.parse import read_scenario
from fairwarning.scenarios.play import Player, StepFailed
from fairwarning.scenarios.playback import read_playback
from fairwarning.testing.server_thread import Background

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api
T = TypeVar("T")
SCOPES_MAX = 1_000  # More than the fleet of any scenario has.
HANDLER_SPEED = 60.0
"""The default speed with a handler. A faster clock would hide events between two polls."""


class RunRequest(Struct, frozen=True, kw_only=True):
    scenario: str
    """The name of a scenario in the library, or the path of a file."""
    speed: float | None
    targets: tuple[str, ...]
    why: str


class HttpOperatorApi:
    """Adapts the commands' API client to the player. Raises `RequestRefused` for a `Problem`."""

    def __init__(self, api: "Api", why: str) -> None:
        self._api = api
        self._why = why

    def get(self, *path: str, **params: Any) -> Json:
        return _asked(lambda: self._api.get(*path, **params))

    def post(self, *path: str, body: Json | None = None) -> Json:
        return _asked(lambda: self._api.post(*path, body=body, why=self._why))

    def delete(self, *path: str) -> Json:
        return _asked(lambda: self._api.delete(*path, why=self._why))


def _asked(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except Problem as problem:
        raise RequestRefused(problem.message, status=problem.status) from None


def play_on_server(session: Session, asked: RunRequest) -> None:
    """Play the scenario on the server of the session. Raises `Problem` if it fails."""
    scenario = _with_targets(find_scenario(asked.scenario), asked.targets)
    printer = ScenarioPrinter(as_json=session.as_json)
    operator = HttpOperatorApi(session.api, asked.why)
    scopes = _scopes(
        operator, scenario, "play the scenario on a server of its own with --serve, or"
    )
    _play(operator, scenario, scopes, asked, printer)


def play_on_private_server(
    session: Session, asked: RunRequest, metadata: tuple[str, int], *, waits: bool
) -> None:
    """Play the scenario on a server that this starts and stops. Raises `Problem` if it fails.

    If `waits` is true, the scenario starts when an instance polls.
    """
    scenario = _with_targets(find_scenario(asked.scenario), asked.targets)
    printer = ScenarioPrinter(as_json=session.as_json)
    try:
        server = PrivateServer(scenario.fleet, metadata)
    except (BadStoreUrl, CannotListen, Refused) as problem:
        raise Problem(str(problem)) from None
    with server, _interruptible(), closing(connect(server.control_url, None, None)) as api:
        operator = HttpOperatorApi(api, asked.why)
        scopes = _scopes(operator, scenario, "add what is missing to [fleet] in its file, or")
        vms = {name: f"{server.url}/vm/{name}" for name in _first(instances_of(scenario), server)}
        printer.ready(metadata=server.url, control=server.control_url, vms=vms, waits=waits)
        if waits:
            _wait(server)
        speed = asked.speed or (HANDLER_SPEED if waits else None)
        asked = RunRequest(scenario=asked.scenario, speed=speed, targets=(), why=asked.why)
        _play(operator, scenario, scopes, asked, printer)


class PrivateServer:
    """A server for one run, with a virtual clock and a store in memory."""

    def __init__(self, fleet: dict[str, Any] | None, metadata: tuple[str, int]) -> None:
        """Start the server. It has the starter fleet if `fleet` is None.

        Raises `BadStoreUrl`, `CannotListen` or `Refused` if the server cannot start.
        """
        self._polled = threading.Event()
        self._background = Background()
        try:
            wanted = None if fleet is None else read_json(fleet, plugins.catalogue())
            self._node = self._background.call(self._start(wanted, metadata))
        except BaseException:
            self._background.stop()
            raise
        self.url = self._node.metadata_urls[0]
        self.control_url = self._node.control_url
        self.names = self._background.call(self._names())
        """The names of all instances."""

    def wait_for_poll(self) -> None:
        """Wait until any instance has polled."""
        self._polled.wait()

    def stop(self) -> None:
        try:
            self._background.call(self._node.stop())
        finally:
            self._background.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.stop()

    async def _start(self, fleet: Fleet | None, metadata: tuple[str, int]) -> Node:
        settings = NodeSettings(
            store_url="memory:", metadata=[metadata], is_clock_virtual=True, fleet=fleet
        )
        node = await Node(settings).start()
        # Activate every scope as a first poll would, so that operations are announced.
        for scope_id in await node.store.scope_ids(limit=SCOPES_MAX):
            await node.engine.submit(scope_id, Activate(), by=ENGINE)
        node.watch(self._on_asked)
        return node

    async def _names(self) -> list[str]:
        scopes = await self._node.store.scopes(limit=SCOPES_MAX)
        return [str(each.name) for scope in scopes for each in scope.roster.live]

    def _on_asked(self, asked: ObservedRequest) -> None:
        if asked.kind == "events":
            self._polled.set()


def _first(names: tuple[str, ...], server: PrivateServer) -> list[str]:
    """Return all instances, those of the scenario first."""
    return [*dict.fromkeys([*names, *server.names])]


def _wait(server: PrivateServer) -> None:
    try:
        server.wait_for_poll()
    except KeyboardInterrupt:
        raise Problem("you stopped before anybody had polled; nothing has happened") from None


def _with_targets(scenario: Scenario, targets: tuple[str, ...]) -> Scenario:
    if not targets:
        return scenario
    names = instances_of(scenario)
    if len(targets) != len(names):
        raise Problem(
            f"the scenario has {counted(len(names), 'instance')} ({', '.join(names)}) and you gave "
            f"{len(targets)}; give --target once for each"
        )
    return replace_instances(scenario, dict(zip(names, targets, strict=True)))


def _play(
    operator: HttpOperatorApi,
    scenario: Scenario,
    scopes: dict[str, str],
    asked: RunRequest,
    printer: ScenarioPrinter,
) -> None:
    try:
        clock = choose_clock_control(operator, asked.speed)
        player = Player(operator, clock, printer.line, scopes)
        printer.open(scenario)
        with _interruptible():
            _perform(player, scenario)
        printer.close(unmet=player.unmet, pending=player.pending())
    except StepFailed as failed:
        place = f"{asked.scenario}:{failed.line}" if failed.line else "fairwarning"
        raise Problem(str(failed), place=place) from None
    except (RequestRefused, SpeedNotAllowed) as problem:
        raise Problem(str(problem)) from None
    if player.unmet:
        raise Problem(f"{counted(player.unmet, 'expectation')} of the scenario not met; see above")


def _perform(player: Player, scenario: Scenario) -> None:
    try:
        player.play(scenario)
    except KeyboardInterrupt:
        pending = "; ".join(map(pending_line, player.pending())) or "nothing"
        raise Problem(
            f"you stopped the scenario; none of its faults is set any more, and still pending is: "
            f"{pending}"
        ) from None


def _scopes(operator: HttpOperatorApi, scenario: Scenario, advice: str) -> dict[str, str]:
    """Return the scope of each instance of the scenario by name.

    Raises `Problem` if the fleet lacks an instance; `advice` is a part of its message.
    """
    found: dict[str, str] = {}
    missing = []
    for name in instances_of(scenario):
        try:
            found[name] = operator.get("instances", name)["scope"]
        except RequestRefused as declined:
            if declined.status != 404:
                raise Problem(str(declined)) from None
            missing.append(name)
    if missing:
        raise Problem(
            f"the server's fleet has no {', '.join(missing)}; {advice} play with other instances: "
            f"one --target for each of {', '.join(instances_of(scenario))}"
        )
    return found


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM end the run as Ctrl-C does, so that its faults are cleared."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def find_scenario(name: str) -> Scenario:
    """Read the scenario called `name` in the library, or the scenario or recording in that file.

    Raises `Problem` if there is none or it has mistakes.
    """
    if name in library.names():
        return read_scenario(library.text(name))
    path = Path(name)
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise Problem(_unknown(name)) from None
    except OSError as error:
        raise Problem(f"{name} cannot be read: {error.strerror}; name another file") from None
    is_recording = path.suffix == ".jsonl" or text.lstrip().startswith("{")
    try:
        return read_playback(text) if is_recording else read_scenario(text)
    except ScenarioProblem as problem:
        raise bad_file(name, problem.mistakes) from None


def library_text(name: str) -> str:
    if name not in library.names():
        raise Problem(_unknown(name))
    return library.text(name)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, library.names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "see them with `fairwarning scenario list`"
    return f"there is no scenario and no file called {name!r}; {hint}"
