"""Cases about approvals that come too often, are refused, or come from another VM first."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.fleet import MEMBER, is_member
from fairwarning.operator_api.schemas import Event

OLD_VERSION = "2017-03-01"
_REFUSALS = 2
_WATCHED_POLLS = 4  # A handler that approves again does so within a few polls.


@case(
    "re-approval",
    "an approved event stays Scheduled, because another VM's deletion is not approved yet",
    why="handlers that approve or drain again in a loop load the service and do their work twice; "
    "once for each poll is allowed",
    vm=MEMBER,
    fits=is_member,
)
def re_approval(run: CaseRun) -> None:
    run.server.delete(run.neighbour)
    event = run.server.delete(run.vm)
    run.tell(f"Terminate for {run.vm} and for {run.neighbour}, which nobody approves")
    run.must_handle(event)
    run.observed.wait_polls(_WATCHED_POLLS)
    most = run.observed.most_approvals_in_a_poll(event.id)
    did = f"it approved {most} times between two polls" if most > 1 else "it did"
    run.must("approve at most once for each poll", most <= 1, did, event)
    run.must_prepare_once(event)
    run.must_keep_polling()


@case(
    "approval-refused",
    "the first two approvals are answered with 503",
    why="handlers that do not look at the answer believe they have approved, and wait in vain",
)
def approval_refused(run: CaseRun) -> None:
    run.server.fault("status", run.vm, on="approve", status=503, count=_REFUSALS)
    run.tell("the next two approvals are answered with 503")
    _must_approve_again(run, run.announce("Reboot"))


@case(
    "approval-cut",
    "the connections of the first two approvals are cut",
    why="handlers that expect an answer to each approval die of a cut connection, or never know "
    "that nobody heard them",
)
def approval_cut(run: CaseRun) -> None:
    run.server.fault("reset", run.vm, on="approve", count=_REFUSALS)
    run.tell("the connections of the next two approvals are cut before they are heard")
    _must_approve_again(run, run.announce("Reboot"))
    run.must_keep_polling()


@case(
    "approval-slow",
    "an approval is answered after three seconds",
    why="handlers that give up after one second ask again and again, and never hear that it was "
    "taken",
)
def approval_slow(run: CaseRun) -> None:
    run.server.fault("slow", run.vm, on="approve", delay="3s", count=1)
    run.tell("the next approval is answered after three seconds")
    event = run.announce("Reboot")
    run.must_handle(event)
    run.observed.wait(lambda: run.server.event(event).phase != "scheduled")
    run.observed.wait_polls(2)
    run.must_prepare_once(event)
    run.must_keep_polling()


def _must_approve_again(run: CaseRun, event: Event) -> None:
    run.must_handle(event)
    if run.observed.approvals(event.id):
        is_retried = run.observed.wait(lambda: run.server.event(event).phase != "scheduled")
        did = f"it approved {run.observed.approvals(event.id)} times"
        run.must("approve again until it is taken", is_retried, did, event)


@case(
    "mixed-versions",
    f"a neighbour polls with {OLD_VERSION} and approves this VM's event before its handler can",
    why="events start without one's own approval, and neighbours may use any api-version",
)
def mixed_versions(run: CaseRun) -> None:
    other = run.as_neighbour()
    other.document(OLD_VERSION)
    event = run.announce("Reboot", duration="5m")
    other.approve(event.id, version=OLD_VERSION)
    run.tell(f"{run.neighbour} approves it with {OLD_VERSION}; it is Started")
    run.observed.wait_polls(2)
    run.must_keep_polling()
    run.finish(event)
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))
    run.tell(f"the handler itself uses {run.observed.versions()}")
