"""`fairwarning scenario run`: on the server that is there, or on one of its own."""

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
from fairwarning.cli.scenario_output import Teller, pending_line
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import counted
from fairwarning.common.text_files import read_text
from fairwarning.core.commands import Activate
from fairwarning.core.model import ENGINE
from fairwarning.core.refusals import Refused
from fairwarning.drivers.catalogue import DRIVER_CATALOGUE
from fairwarning.fleet_file import Fleet, read_json
from fairwarning.metadata.request_watchers import Asked
from fairwarning.node import CannotListen, Node, NodeSettings
from fairwarning.scenarios import library
from fairwarning.scenarios.api import Declined, Json
from fairwarning.scenarios.clock_control import NoSuchSpeed, choose_pace
from fairwarning.scenarios.instance_mapping import cast_of, recast
from fairwarning.scenarios.model import Scenario, ScenarioProblem
from fairwarning.scenarios.parse import read_scenario
from fairwarning.scenarios.play import Player, StepFailed
from fairwarning.scenarios.playback import read_playback
from fairwarning.testing.server_thread import Background

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api
T = TypeVar("T")
HANDLER_SPEED = 60.0
"""With a handler that looks on, a leap would hide everything from it."""


class RunRequest(Struct, frozen=True, kw_only=True):
    story: str
    speed: float | None
    targets: tuple[str, ...]
    why: str


class ApiOperator:
    """The commands' own client, in the form that a player wants."""

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
        raise Declined(problem.message, status=problem.status) from None


def perform(session: Session, asked: RunRequest) -> None:
    """On the server that the session is about."""
    scenario = _cast(find_scenario(asked.story), asked.targets)
    teller = Teller(as_json=session.as_json)
    operator = ApiOperator(session.api, asked.why)
    scopes = _scopes(operator, scenario, "play the story on a server of its own with --serve, or")
    _play(operator, scenario, scopes, asked, teller)


def perform_alone(
    session: Session, asked: RunRequest, metadata: tuple[str, int], *, waits: bool
) -> None:
    scenario = _cast(find_scenario(asked.story), asked.targets)
    teller = Teller(as_json=session.as_json)
    try:
        server = PrivateServer(scenario.fleet, metadata)
    except (BadStoreUrl, CannotListen, Refused) as problem:
        raise Problem(str(problem)) from None
    with server, _interruptible(), closing(connect(server.control_url, None, None)) as api:
        operator = ApiOperator(api, asked.why)
        scopes = _scopes(operator, scenario, "add what is missing to [fleet] in its file, or")
        vms = {name: f"{server.url}/vm/{name}" for name in _first(cast_of(scenario), server)}
        teller.ready(metadata=server.url, control=server.control_url, vms=vms, waits=waits)
        if waits:
            _wait(server)
        speed = asked.speed or (HANDLER_SPEED if waits else None)
        asked = RunRequest(story=asked.story, speed=speed, targets=(), why=asked.why)
        _play(operator, scenario, scopes, asked, teller)


class PrivateServer:
    def __init__(self, fleet: dict[str, Any] | None, metadata: tuple[str, int]) -> None:
        """`fleet` None: the starter fleet. Raises what starting a node raises."""
        self._polled = threading.Event()
        self._background = Background()
        try:
            wanted = None if fleet is None else read_json(fleet, DRIVER_CATALOGUE)
            self._node = self._background.call(self._start(wanted, metadata))
        except BaseException:
            self._background.stop()
            raise
        self.url = self._node.metadata_urls[0]
        self.control_url = self._node.control_url
        self.names = self._background.call(self._names())
        """Of all instances."""

    def wait_for_poll(self) -> None:
        """Returns when somebody has asked for a document."""
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
        # Somebody always looks in a rehearsal, so that what owners ask is announced.
        for scope_id in await node.store.scope_ids(limit=SCOPES_MAX):
            await node.engine.submit(scope_id, Activate(), by=ENGINE)
        node.watch(self._on_asked)
        return node

    async def _names(self) -> list[str]:
        scopes = await self._node.store.scopes(limit=SCOPES_MAX)
        return [str(each.name) for scope in scopes for each in scope.roster.live]

    def _on_asked(self, asked: Asked) -> None:
        if asked.kind == "events":
            self._polled.set()


def _first(cast: tuple[str, ...], server: PrivateServer) -> list[str]:
    """Who plays, and then everybody else: a neighbour's handler is worth a test too."""
    return [*dict.fromkeys([*cast, *server.names])]


def _wait(server: PrivateServer) -> None:
    try:
        server.wait_for_poll()
    except KeyboardInterrupt:
        raise Problem("you stopped before anybody had polled; nothing has happened") from None


def _cast(scenario: Scenario, targets: tuple[str, ...]) -> Scenario:
    if not targets:
        return scenario
    cast = cast_of(scenario)
    if len(targets) != len(cast):
        raise Problem(
            f"the story has {counted(len(cast), 'instance')} ({', '.join(cast)}) and you gave "
            f"{len(targets)}; give --target once for each"
        )
    return recast(scenario, dict(zip(cast, targets, strict=True)))


def _play(
    operator: ApiOperator,
    scenario: Scenario,
    scopes: dict[str, str],
    asked: RunRequest,
    teller: Teller,
) -> None:
    try:
        pace = choose_pace(operator, asked.speed)
        player = Player(operator, pace, teller.tell, scopes)
        teller.open(scenario)
        with _interruptible():
            _perform(player, scenario)
        teller.close(unmet=player.unmet, pending=player.pending())
    except StepFailed as failed:
        place = f"{asked.story}:{failed.line}" if failed.line else "fairwarning"
        raise Problem(str(failed), place=place) from None
    except (Declined, NoSuchSpeed) as problem:
        raise Problem(str(problem)) from None
    if player.unmet:
        raise Problem(f"{counted(player.unmet, 'expectation')} of the story not met; see above")


def _perform(player: Player, scenario: Scenario) -> None:
    try:
        player.play(scenario)
    except KeyboardInterrupt:
        pending = "; ".join(map(pending_line, player.pending())) or "nothing"
        raise Problem(
            f"you stopped the story; none of its faults is set any more, and still pending is: "
            f"{pending}"
        ) from None


def _scopes(operator: ApiOperator, scenario: Scenario, advice: str) -> dict[str, str]:
    """Of each instance of the cast. `advice`: what to do if the fleet lacks one."""
    found: dict[str, str] = {}
    missing = []
    for name in cast_of(scenario):
        try:
            found[name] = operator.get("instances", name)["scope"]
        except Declined as declined:
            if declined.status != 404:
                raise Problem(str(declined)) from None
            missing.append(name)
    if missing:
        raise Problem(
            f"the server's fleet has no {', '.join(missing)}; {advice} play with other instances: "
            f"one --target for each of {', '.join(cast_of(scenario))}"
        )
    return found


@contextmanager
def _interruptible() -> Iterator[None]:
    """A polite kill ends the story as Ctrl-C does, so that no fault is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# From what a person named to the scenario that is meant: ours, a file, or a recording.
def find_scenario(name: str) -> Scenario:
    """Raises Problem, with the line if it is a file's fault."""
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
        place = name if problem.line is None else f"{name}:{problem.line}"
        raise Problem(problem.message, place=place) from None


def library_text(name: str) -> str:
    if name not in library.names():
        raise Problem(_unknown(name))
    return library.text(name)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, library.names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "see them with `fairwarning scenario list`"
    return f"there is no story and no file called {name!r}; {hint}"


# A server for one rehearsal: on a virtual clock, in memory, gone when the rehearsal is over.
SCOPES_MAX = 1_000
