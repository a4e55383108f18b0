"""Cases about which VM an event is for. Every VM of a scope sees the events of all."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.fleet import MEMBER, NEIGHBOUR, SIMILAR, TWIN, VM


@case(
    "own-event",
    "a reboot of this VM, a quarter of an hour ahead",
    why="the plain case: handlers that never approve keep every maintenance waiting for its end",
)
def own_event(run: CaseRun) -> None:
    event = run.announce("Reboot")
    run.must_handle(event)
    run.finish(event)
    run.must_keep_polling()


@case(
    "neighbour",
    "a reboot of a neighbour only",
    why="handlers that do not read Resources drain and approve for machines they do not know",
)
def neighbour(run: CaseRun) -> None:
    run.must_ignore(run.announce("Reboot", NEIGHBOUR), "it is a neighbour's")


@case(
    "scale-set-name",
    "a reboot of an instance of a scale set, named SET_N and not like its host",
    why="handlers that compare Resources with the hostname never find themselves "
    "(azure-docs#62522)",
    vm=MEMBER,
)
def scale_set_name(run: CaseRun) -> None:
    run.must_handle(run.announce("Reboot"))


@case(
    "similar-name",
    f"a reboot of {SIMILAR}, while this VM is {MEMBER}",
    why="handlers that look for their name anywhere in the text take others' events for their own",
    vm=MEMBER,
)
def similar_name(run: CaseRun) -> None:
    run.must_ignore(run.announce("Reboot", SIMILAR), "only the beginning of the name is ours")


@case(
    "multi-vm",
    "an event for this VM and another one, first in Resources",
    why="handlers that expect exactly one resource overlook an event that hits several VMs",
)
def multi_vm(run: CaseRun) -> None:
    run.must_handle(run.announce("Freeze", VM, TWIN))


@case(
    "multi-vm-second",
    "an event for another VM and this one, second in Resources",
    why="handlers that look at the first resource only are hit unprepared",
    vm=TWIN,
)
def multi_vm_second(run: CaseRun) -> None:
    # An event for this VM alone comes first. It shows whether the handler writes a log.
    own = run.announce("Reboot")
    run.must_handle(own)
    run.finish(own)
    run.observed.wait_polls(2)
    run.must_notice(run.announce("Freeze", VM, TWIN))
