"""Answers that a handler must survive: each was seen of a real endpoint, or is allowed."""

from fairwarning.handler_check.case_api import SETTLED_POLLS, Scene
from fairwarning.handler_check.cases.registry import story

_DEAD_PROXY = "http://127.0.0.1:9"
_HASTE_S = 0.5
_HELD_POLLS = 4


def _endure(scene: Scene, polls: int) -> None:
    """So many polls with what is wrong now, and then an event as if nothing had been."""
    before = scene.seen.polls()
    scene.seen.wait(lambda: scene.seen.polls() > before + polls)
    scene.server.clear_faults()
    # It may well have learnt to ask more seldom meanwhile.
    scene.must_handle(scene.announce("Reboot"), within_s=2 * scene.seen.patience_s)


@story(
    "iso-dates",
    "NotBefore in ISO 8601, as pages of Microsoft's and its mock server have it",
    why="handlers that read one form of dates only fall over the other (azure-docs#5659)",
)
def iso_dates(scene: Scene) -> None:
    scene.server.fault("iso-dates", scene.vm)
    scene.tell("NotBefore is written like 2026-01-31T12:00:00Z from now on")
    scene.must_handle(scene.announce("Reboot"))
    scene.must_live()


@story(
    "dotnet-dates",
    "NotBefore as .NET writes a date that nobody gave a form to",
    why="handlers that cannot read a date overlook the event, die of it, or take days for now",
)
def dotnet_dates(scene: Scene) -> None:
    far = scene.announce("Redeploy", notice="3d")
    scene.seen.wait_polls(SETTLED_POLLS)
    # One that approves days ahead in any form of date has a fault of another kind.
    can_wait = not scene.seen.has_touched(far.id)
    scene.server.fault("dotnet-dates", scene.vm)
    scene.tell("NotBefore is written like 1/31/2026 12:00:00 PM +00:00 from now on")
    if can_wait:
        scene.must_ignore(far, "it is days away, in whatever form its date is written")
    if scene.server.event(far).phase == "scheduled":
        scene.server.cancel(far)
        scene.tell("that event is cancelled")
    else:
        scene.finish(far)
    scene.must_handle(scene.announce("Reboot"))
    scene.must_live()


@story(
    "empty-body",
    "200 with an empty body, twice",
    why="handlers that parse whatever comes die of it (aks-node-termination-handler PR #70)",
)
def empty_body(scene: Scene) -> None:
    scene.server.fault("empty", scene.vm, count=2)
    scene.tell("the next two polls are answered with 200 and nothing")
    _endure(scene, 2)


@story(
    "server-errors",
    "500, 503 and 410, twice each",
    why="the endpoint is away while its host is updated, just when events are near",
)
def server_errors(scene: Scene) -> None:
    scene.tell("the next six polls are answered with 500, 503 and 410")
    for status in (500, 503, 410):
        scene.server.fault("status", scene.vm, status=status, count=2)
    _endure(scene, 6)


@story(
    "throttled",
    "429 Too Many Requests",
    why="handlers that ask again at once make it worse, and are never answered",
)
def throttled(scene: Scene) -> None:
    with scene.server.fault("status", scene.vm, status=429):
        scene.tell("every poll is answered with 429")
        took_s = scene.seen.pace(_HELD_POLLS)
    scene.must(
        "not ask faster than before",
        took_s > _HASTE_S,
        f"its next {_HELD_POLLS} polls took {took_s:.1f} s",
    )
    _endure(scene, 0)


@story(
    "slow-answers",
    "answers that take three seconds, or come in small pieces",
    why="the first call of a VM takes up to two minutes, and later ones seconds; handlers that "
    "give up after one second fail (aks-node-termination-handler PR #73)",
)
def slow_answers(scene: Scene) -> None:
    scene.server.fault("slow", scene.vm, delay="3s", count=1)
    scene.server.fault("slow-body", scene.vm, delay="2s", count=1)
    scene.tell("one answer comes after three seconds, and one in pieces over two seconds")
    scene.must_handle(scene.announce("Reboot"), within_s=scene.seen.patience_s + 5)
    scene.must_live()


@story(
    "connection-reset",
    "the connection is cut instead of an answer, twice",
    why="handlers that expect errors of HTTP only die of an error of the network",
)
def connection_reset(scene: Scene) -> None:
    scene.server.fault("reset", scene.vm, count=2)
    scene.tell("the next two connections are cut")
    _endure(scene, 2)


@story(
    "unknown-version",
    "the service does not know the api-version 2020-07-01",
    why="versions come to regions at different times (azure-docs#46771): who insists on the "
    "newest one is blind there",
    newest_version="2019-08-01",
)
def unknown_version(scene: Scene) -> None:
    scene.tell("every request with 2020-07-01 is answered with 400")
    scene.must_handle(scene.announce("Reboot"))


@story(
    "unknown-type",
    "one more event, of a type that nobody has heard of",
    why="new types come without warning; who stops at one misses the others",
)
def unknown_type(scene: Scene) -> None:
    scene.server.fault("unknown-type", scene.vm)
    scene.tell("HostDefragmentation for this VM, far in the future, is in every document")
    scene.seen.wait_polls(2)
    scene.must_handle(scene.announce("Reboot"))
    scene.must_live()


@story(
    "unknown-fields",
    "fields that no version has, in the document and in each event",
    why="versions add fields, and strict readers refuse the whole document for it",
)
def unknown_fields(scene: Scene) -> None:
    scene.server.fault("unknown-fields", scene.vm)
    scene.tell("documents and events have one more field from now on")
    scene.must_handle(scene.announce("Reboot"))


@story(
    "duplicate",
    "each event is in the document twice",
    why="handlers that count events, or do their work for each line, do it twice",
)
def duplicate(scene: Scene) -> None:
    scene.server.fault("duplicate", scene.vm)
    scene.tell("documents have each event twice from now on")
    event = scene.announce("Reboot")
    scene.must_handle(event)
    scene.seen.wait_polls(2)
    drains = scene.seen.diary.count("drain", event.id)
    scene.must("prepare once", drains <= 1, f"it drained {drains} times" if drains else "it did")


@story(
    "proxy",
    "the machine has a proxy in its environment, and it is down",
    why="the endpoint is on the machine's own link: through a proxy it is out of reach, or the "
    "proxy's own",
    environment=dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), _DEAD_PROXY),
)
def proxy(scene: Scene) -> None:
    scene.tell(f"http_proxy is {_DEAD_PROXY}, where nobody listens")
    scene.must_handle(scene.announce("Reboot"))
