"""What instances noticed of each kind of fault."""

import pytest

from fairwarning.live_check.fault_figures import fault_figures, fault_lines
from fairwarning.live_check.figures import Figures
from fairwarning.live_check.records import Fault, NodeChange
from tests.live_check.round_builder import RoundBuilder, at


def faulted(*faults: tuple[str, float, float, float]) -> RoundBuilder:
    make = RoundBuilder()
    make.scheduled("DUE", ["web-0"], 1, 900)
    for name, began, ended, writable in faults:
        make.records.add(
            Fault(name=name, detail="", began=at(began), ended=at(ended), writable=at(writable))
        )
    return make


def test_the_longest_time_without_an_approval_and_the_time_after_the_first_write() -> None:
    make = faulted(("failover", 100, 110, 104))
    for second in (99, 101, 104.5, 105, 111, 170):
        make.approve("web-0", "DUE", second)
    make.approve("web-0", "DUE", 103, status=503)
    figures = fault_figures(make.records)["failover"]
    assert figures.times == 1
    assert figures.longest_gap_s == pytest.approx(170.01 - 111.01, abs=0.1)
    assert figures.back_s == pytest.approx(0.51)


def test_a_fault_is_noticed_until_the_next_one_begins_or_all_servers_are_killed() -> None:
    make = faulted(("cut", 100, 101, 101), ("kill", 110, 111, 111))
    make.records.add(NodeChange(node="node-1.1", change="killed", at=at(120)))
    for second in (105, 115, 130):
        make.approve("web-0", "DUE", second)
    make.unanswered_poll("web-0", 109).failed = at(109.5)
    make.unanswered_poll("web-0", 112).failed = at(112.5)
    figures = fault_figures(make.records)
    assert (figures["cut"].failed_polls, figures["kill"].failed_polls) == (1, 1)
    assert figures["cut"].longest_gap_s == pytest.approx(5.01)
    assert figures["kill"].longest_gap_s == pytest.approx(5.01)


def test_an_answer_that_comes_late_counts_up_to_the_next_fault() -> None:
    make = faulted(("cut", 100, 101, 101), ("kill", 110, 111, 111))
    make.approve("web-0", "DUE", 102)
    make.approve("web-0", "DUE", 108)
    make.records.approvals[-1].answered = at(130)
    assert fault_figures(make.records)["cut"].slowest_answer_s == pytest.approx(2.01)


def test_the_figures_of_several_rounds_are_added_up_by_name() -> None:
    figures = Figures()
    for back in (1, 3):
        make = faulted(("cut", 100, 101, 101))
        make.approve("web-0", "DUE", 101 + back)
        make.records.add(NodeChange(node="node-1.1", change="killed", at=at(110)))
        figures.add(make.records, [], 1)
    told = figures.to_json()["faults"]["cut"]
    assert told["times"] == 2
    assert told["writableToApprovalSeconds"] == pytest.approx(3.01)
    (_, line) = fault_lines(figures.faults)
    assert line.split()[:2] == ["cut", "2"]


def test_without_faults_there_is_no_table() -> None:
    assert list(fault_lines({})) == []
