"""The faults that are set: how many there may be, and who hears when one is over."""

import pytest

from fairwarning.core.faults import Fault, FaultKind, Part
from fairwarning.core.instants import MINUTE_MS, later
from fairwarning.core.model import InstanceName
from fairwarning.engine.active_faults import FAULTS_MAX, Faults, TooManyFaults
from fairwarning.engine.clocks import VirtualClock


async def test_there_are_so_many_at_most_and_one_that_is_over_makes_room() -> None:
    clock = VirtualClock()
    faults = Faults(clock)
    until = later(clock.now(), MINUTE_MS)
    for _ in range(FAULTS_MAX):
        faults.set(Fault(id="", kind=FaultKind.EMPTY, until_ms=until))
    with pytest.raises(TooManyFaults):
        faults.set(Fault(id="", kind=FaultKind.EMPTY))
    await clock.advance(MINUTE_MS)
    faults.set(Fault(id="", kind=FaultKind.EMPTY))
    assert len(faults.list()) == 1


def test_who_listens_hears_at_once_of_every_change() -> None:
    faults = Faults(VirtualClock())
    heard: list[int] = []
    faults.set(Fault(id="", kind=FaultKind.EMPTY, count=1))
    faults.listen(lambda now: heard.append(len(now)))
    other = faults.set(Fault(id="", kind=FaultKind.RESET))
    struck = faults.draw(InstanceName("web-0"), next(iter(Part)))
    assert struck is not None
    assert struck.kind is FaultKind.EMPTY
    assert heard == [1, 2, 1]
    assert (faults.clear("unknown"), faults.clear(other.id)) == (0, 1)
    assert heard[-1] == 0
    assert faults.struck == {FaultKind.EMPTY: 1}


def test_a_fault_of_another_instance_leaves_the_request_to_the_next() -> None:
    faults = Faults(VirtualClock())
    others = (InstanceName("web-1"),)
    faults.set(Fault(id="", kind=FaultKind.EMPTY, instances=others))
    assert faults.draw(InstanceName("web-0"), Part.POLL) is None
    own = faults.set(Fault(id="", kind=FaultKind.RESET))
    struck = faults.draw(InstanceName("web-0"), Part.POLL)
    assert struck is not None
    assert struck.id == own.id
    assert [each.hits for each in faults.list()] == [0, 1]


def test_a_probability_of_zero_never_strikes_and_all_are_cleared_at_once() -> None:
    faults = Faults(VirtualClock())
    faults.set(Fault(id="", kind=FaultKind.EMPTY, probability=0.0))
    faults.set(Fault(id="", kind=FaultKind.EMPTY, probability=0.0))
    assert all(faults.draw(InstanceName("web-0"), Part.POLL) is None for _ in range(20))
    assert faults.clear() == 2
    assert faults.list() == []
