"""Cases about bad responses that a real endpoint may send and a handler must survive."""

from statistics import median

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.observations import SETTLED_POLLS

_DEAD_PROXY = "http://127.0.0.1:9"
_REQUESTS_PER_S_MAX = 5  # The documented limit of the endpoint.
_HASTE = 0.5
"""Pauses that are shorter than this share of the allowed ones are no accident."""
_TIMED_POLLS = 4


def _endure(run: CaseRun, polls: int) -> None:
    """Wait for that many polls, clear the faults, and require that an event is handled."""
    before = run.observed.polls()
    run.observed.wait(lambda: run.observed.polls() > before + polls)
    run.server.clear_faults()
    # The handler may now poll less often, so it gets twice the time.
    run.must_handle(run.announce("Reboot"), within_s=2 * run.observed.patience_s)


@case(
    "iso-dates",
    "NotBefore in ISO 8601, as pages of Microsoft's and its mock server have it",
    why="handlers that read one form of dates only fall over the other (azure-docs#5659)",
)
def iso_dates(run: CaseRun) -> None:
    run.server.fault("iso-dates", run.vm)
    run.tell("NotBefore is written like 2026-01-31T12:00:00Z from now on")
    run.must_handle(run.announce("Reboot"))
    run.must_keep_polling()


@case(
    "dotnet-dates",
    "NotBefore as .NET writes a date that nobody gave a form to",
    why="handlers that cannot read a date overlook the event, die of it, or take days for now",
)
def dotnet_dates(run: CaseRun) -> None:
    far = run.announce("Redeploy", notice="3d")
    run.observed.wait_polls(SETTLED_POLLS)
    # A handler that approves days ahead with any date format fails another case.
    can_wait = not run.observed.has_acted_on(far.id)
    run.server.fault("dotnet-dates", run.vm)
    run.tell("NotBefore is written like 1/31/2026 12:00:00 PM +00:00 from now on")
    if can_wait:
        run.must_ignore(far, "it is days away, in whatever form its date is written")
    if run.server.event(far).phase == "scheduled":
        run.server.cancel(far)
        run.tell("that event is cancelled")
    else:
        run.finish(far)
    run.must_handle(run.announce("Reboot"))
    run.must_keep_polling()


@case(
    "empty-body",
    "200 with an empty body, twice",
    why="handlers that parse whatever comes die of it (aks-node-termination-handler PR #70)",
)
def empty_body(run: CaseRun) -> None:
    run.server.fault("empty", run.vm, count=2)
    run.tell("the next two polls are answered with 200 and nothing")
    _endure(run, 2)


@case(
    "server-errors",
    "500, 503 and 410, twice each",
    why="the endpoint is away while its host is updated, just when events are near",
)
def server_errors(run: CaseRun) -> None:
    run.tell("the next six polls are answered with 500, 503 and 410")
    for status in (500, 503, 410):
        run.server.fault("status", run.vm, status=status, count=2)
    _endure(run, 6)


@case(
    "throttled",
    "429 Too Many Requests",
    why="handlers that ask again at once make it worse, and are never answered",
)
def throttled(run: CaseRun) -> None:
    run.observed.wait_polls(_TIMED_POLLS)
    mark = run.observed.mark()
    with run.server.fault("status", run.vm, status=429):
        run.tell("every poll is answered with 429")
        run.observed.wait_polls(_TIMED_POLLS)
        # The first one was sent before the handler knew, so the pause before it says nothing.
        after_s = run.observed.poll_pauses_s(since=mark)
    before_s = run.observed.poll_pauses_s(until=mark)
    if before_s and after_s:
        before, after = median(before_s), median(after_s)
        run.must(
            f"not ask faster than before, nor more than {_REQUESTS_PER_S_MAX} times a second",
            after >= max(_HASTE * before, 1 / _REQUESTS_PER_S_MAX * _HASTE),
            f"it asked every {before:.2f} s before, and every {after:.2f} s after 429",
        )
    _endure(run, 0)


@case(
    "slow-answers",
    "answers that take three seconds, or come in small pieces",
    why="the first call of a VM takes up to two minutes, and later ones seconds; handlers that "
    "give up after one second fail (aks-node-termination-handler PR #73)",
)
def slow_answers(run: CaseRun) -> None:
    run.server.fault("slow", run.vm, delay="3s", count=1)
    run.server.fault("slow-body", run.vm, delay="2s", count=1)
    run.tell("one answer comes after three seconds, and one in pieces over two seconds")
    run.must_handle(run.announce("Reboot"), within_s=run.observed.patience_s + 5)
    run.must_keep_polling()


@case(
    "connection-reset",
    "the connection is cut instead of an answer, twice",
    why="handlers that expect errors of HTTP only die of an error of the network",
)
def connection_reset(run: CaseRun) -> None:
    run.server.fault("reset", run.vm, count=2)
    run.tell("the next two connections are cut")
    _endure(run, 2)


@case(
    "unknown-version",
    "the service does not know the api-version 2020-07-01",
    why="versions come to regions at different times (azure-docs#46771): who insists on the "
    "newest one is blind there",
    newest_version="2019-08-01",
)
def unknown_version(run: CaseRun) -> None:
    run.tell("every request with 2020-07-01 is answered with 400")
    run.must_handle(run.announce("Reboot"))


@case(
    "unknown-version-404",
    "the same, with 404 instead of 400",
    why="both have been seen, and handlers that know only one of them take the other for an outage",
    newest_version="2019-08-01",
    unknown_version_status=404,
)
def unknown_version_404(run: CaseRun) -> None:
    run.tell("every request with 2020-07-01 is answered with 404")
    run.must_handle(run.announce("Reboot"))


@case(
    "unknown-type",
    "one more event, of a type that nobody has heard of",
    why="new types come without warning; who stops at one misses the others",
)
def unknown_type(run: CaseRun) -> None:
    run.server.fault("unknown-type", run.vm)
    run.tell("HostDefragmentation for this VM, far in the future, is in every document")
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))
    run.must_keep_polling()


@case(
    "unknown-fields",
    "fields that no version has, in the document and in each event",
    why="versions add fields, and strict readers refuse the whole document for it",
)
def unknown_fields(run: CaseRun) -> None:
    run.server.fault("unknown-fields", run.vm)
    run.tell("documents and events have one more field from now on")
    run.must_handle(run.announce("Reboot"))


@case(
    "duplicate",
    "each event is in the document twice",
    why="handlers that count events, or do their work for each line, do it twice",
)
def duplicate(run: CaseRun) -> None:
    run.server.fault("duplicate", run.vm)
    run.tell("documents have each event twice from now on")
    event = run.announce("Reboot")
    run.must_handle(event)
    run.observed.wait_polls(2)
    run.must_prepare_once(event)


@case(
    "proxy",
    "the machine has a proxy in its environment, and it is down",
    why="the endpoint is on the machine's own link: through a proxy it is out of reach, or the "
    "proxy's own",
    environment=dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), _DEAD_PROXY),
)
def proxy(run: CaseRun) -> None:
    run.tell(f"http_proxy is {_DEAD_PROXY}, where nobody listens")
    run.must_handle(run.announce("Reboot"))
