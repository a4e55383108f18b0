"""Whose event is it? Everybody in a scope sees the events of everybody."""

from fairwarning.handler_check.case_api import Scene
from fairwarning.handler_check.cases.registry import story
from fairwarning.handler_check.fleet import MEMBER, NEIGHBOUR, SIMILAR, TWIN, VM


@story(
    "own-event",
    "a reboot of this VM, a quarter of an hour ahead",
    why="the plain case: handlers that never approve keep every maintenance waiting for its end",
)
def own_event(scene: Scene) -> None:
    event = scene.announce("Reboot")
    scene.must_handle(event)
    scene.finish(event)
    scene.must_live()


@story(
    "neighbour",
    "a reboot of a neighbour only",
    why="handlers that do not read Resources drain and approve for machines they do not know",
)
def neighbour(scene: Scene) -> None:
    scene.must_ignore(scene.announce("Reboot", NEIGHBOUR), "it is a neighbour's")


@story(
    "scale-set-name",
    "a reboot of an instance of a scale set, named SET_N and not like its host",
    why="handlers that compare Resources with the hostname never find themselves "
    "(azure-docs#62522)",
    vm=MEMBER,
)
def scale_set_name(scene: Scene) -> None:
    scene.must_handle(scene.announce("Reboot"))


@story(
    "similar-name",
    f"a reboot of {SIMILAR}, while this VM is {MEMBER}",
    why="handlers that look for their name anywhere in the text take others' events for their own",
    vm=MEMBER,
)
def similar_name(scene: Scene) -> None:
    scene.must_ignore(scene.announce("Reboot", SIMILAR), "only the beginning of the name is ours")


@story(
    "multi-vm",
    "an event for this VM and another one, first in Resources",
    why="handlers that expect exactly one resource overlook an event that hits several VMs",
)
def multi_vm(scene: Scene) -> None:
    scene.must_handle(scene.announce("Freeze", VM, TWIN))


@story(
    "multi-vm-second",
    "an event for another VM and this one, second in Resources",
    why="handlers that look at the first resource only are hit unprepared",
    vm=TWIN,
)
def multi_vm_second(scene: Scene) -> None:
    # One of its own first: it shows whether the handler keeps a log at all.
    own = scene.announce("Reboot")
    scene.must_handle(own)
    scene.finish(own)
    scene.seen.wait_polls(2)
    scene.must_notice(scene.announce("Freeze", VM, TWIN))
