"""Cases about which VM an event is for. Every VM of a scope sees the events of all."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.fleet import MEMBER, has_similar, is_member


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
    run.must_ignore(run.announce("Reboot", run.neighbour), "it is a neighbour's")


@case(
    "scale-set-name",
    "a reboot of an instance of a scale set, named SET_N and not like its host",
    why="handlers that compare Resources with the hostname never find themselves "
    "(azure-docs#62522)",
    vm=MEMBER,
    fits=is_member,
)
def scale_set_name(run: CaseRun) -> None:
    run.must_handle(run.announce("Reboot"))


@case(
    "similar-name",
    f"a reboot of {MEMBER}0, while this VM is {MEMBER}",
    why="handlers that look for their name anywhere in the text take others' events for their own",
    vm=MEMBER,
    fits=has_similar,
)
def similar_name(run: CaseRun) -> None:
    run.must_ignore(run.announce("Reboot", run.similar), "only the beginning of the name is ours")


@case(
    "multi-vm",
    "an event for this VM and another one, first in Resources",
    why="handlers that expect exactly one resource overlook an event that hits several VMs",
)
def multi_vm(run: CaseRun) -> None:
    run.learn_whether_it_logs()
    run.must_notice(run.announce("Freeze", run.vm, run.twin))


@case(
    "multi-vm-second",
    "an event for another VM and this one, second in Resources",
    why="handlers that look at the first resource only are hit unprepared",
)
def multi_vm_second(run: CaseRun) -> None:
    run.learn_whether_it_logs()
    run.must_notice(run.announce("Freeze", run.twin, run.vm))


@case(
    "fewer-resources",
    "an event for another VM and this one, and then for this one alone",
    why="handlers that look at Resources once leave the approval to a VM that has left the event",
)
def fewer_resources(run: CaseRun) -> None:
    event = run.announce("Freeze", run.twin, run.vm)
    run.observed.wait_polls(2)
    if run.server.event(event).phase == "scheduled":
        run.server.fault("fewer-resources", run.vm)
        run.tell(f"{run.twin} has left the event: Resources has {run.vm} alone")
    run.must_handle(event)
