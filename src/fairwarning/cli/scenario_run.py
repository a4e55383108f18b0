"""`fairwarning scenario run`: on the server that is there, or on one of its own."""

import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from fairwarning.boot import BadStoreUrl
from fairwarning.cli.private_server import PrivateServer
from fairwarning.cli.problems import Problem
from fairwarning.cli.scenario_file import find_scenario
from fairwarning.cli.session import Session, connect
from fairwarning.cli.telling import Teller, pending_line
from fairwarning.cli.text import counted
from fairwarning.core.refusals import Refused
from fairwarning.node import CannotListen
from fairwarning.scenarios.api import Declined, Json
from fairwarning.scenarios.clock_control import NoSuchSpeed, choose_pace
from fairwarning.scenarios.instance_mapping import cast_of, recast
from fairwarning.scenarios.model import Scenario
from fairwarning.scenarios.play import Player, StepFailed

if TYPE_CHECKING:
    from fairwarning.cli.client import Api

T = TypeVar("T")
HANDLER_SPEED = 60.0
"""With a handler that looks on, a leap would hide everything from it."""


class Asked(Struct, frozen=True, kw_only=True):
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


def perform(session: Session, asked: Asked) -> None:
    """On the server that the session is about."""
    scenario = _cast(find_scenario(asked.story), asked.targets)
    teller = Teller(as_json=session.as_json)
    operator = ApiOperator(session.api, asked.why)
    scopes = _scopes(operator, scenario, "play the story on a server of its own with --serve, or")
    _play(operator, scenario, scopes, asked, teller)


def perform_alone(
    session: Session, asked: Asked, metadata: tuple[str, int], *, waits: bool
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
        asked = Asked(story=asked.story, speed=speed, targets=(), why=asked.why)
        _play(operator, scenario, scopes, asked, teller)


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
    asked: Asked,
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
