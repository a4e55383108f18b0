"""Cases about approvals that come too often, are refused, or come from another VM first."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.fleet import MEMBER, NEIGHBOUR
from fairwarning.handler_check.observations import DRAIN

OLD_VERSION = "2017-03-01"
_WATCHED_POLLS = 4  # A handler that approves again does so within a few polls.


@case(
    "re-approval",
    "an approved event stays Scheduled, because another VM's deletion is not approved yet",
    why="handlers that approve or drain again in a loop load the service and do their work twice; "
    "once for each poll is allowed",
    vm=MEMBER,
)
def re_approval(run: CaseRun) -> None:
    run.server.delete("workers_2")
    event = run.server.delete(run.vm)
    run.tell(f"Terminate for {run.vm} and for workers_2, which nobody approves")
    run.must_handle(event)
    approvals, polls = run.observed.approvals(event.id), run.observed.polls()
    run.observed.wait_polls(_WATCHED_POLLS)
    more = run.observed.approvals(event.id) - approvals
    asked = run.observed.polls() - polls
    run.must(
        "approve at most once for each poll",
        more <= asked + 1,
        f"it approved {more} times more in {asked} polls",
    )
    drains = run.observed.log.count(DRAIN, event.id)
    run.must("prepare once", drains <= 1, f"it drained {drains} times" if drains else "it did")
    run.must_keep_polling()


@case(
    "approval-refused",
    "the first two approvals are answered with 503",
    why="handlers that do not look at the answer believe they have approved, and wait in vain",
)
def approval_refused(run: CaseRun) -> None:
    run.server.fault("status", run.vm, on="approve", status=503, count=2)
    run.tell("the next two approvals are answered with 503")
    event = run.announce("Reboot")
    run.must_handle(event)
    if run.observed.approvals(event.id):
        is_retried = run.observed.wait(lambda: run.server.event(event).phase != "scheduled")
        did = f"it approved {run.observed.approvals(event.id)} times"
        run.must("approve again until it is taken", is_retried, did)


@case(
    "mixed-versions",
    f"a neighbour polls with {OLD_VERSION} and approves this VM's event before its handler can",
    why="events start without one's own approval, and neighbours may use any api-version",
)
def mixed_versions(run: CaseRun) -> None:
    other = run.neighbour(NEIGHBOUR)
    other.document(OLD_VERSION)
    event = run.announce("Reboot", duration="5m")
    other.approve(event.id, version=OLD_VERSION)
    run.tell(f"{NEIGHBOUR} approves it with {OLD_VERSION}; it is Started")
    run.observed.wait_polls(2)
    run.must_keep_polling()
    run.finish(event)
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))
    run.tell(f"the handler itself uses {run.observed.versions()}")
