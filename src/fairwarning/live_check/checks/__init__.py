"""The checks are pure functions over the records of a round, one for each promise.

They use only what an outside observer can see: the driver's log, the answers to callers and
instances, the fleet file, and the history. They use none of the program's rules.
"""

from collections.abc import Callable, Iterator

from fairwarning.live_check.checks import documents
from fairwarning.live_check.checks.answers import NO_BUG, check_answers, check_approvals
from fairwarning.live_check.checks.domains import check_barrier, check_domains
from fairwarning.live_check.checks.evidence import Evidence, Finding
from fairwarning.live_check.checks.impacts import check_once
from fairwarning.live_check.checks.notice import check_leaving, check_never_early, check_notice
from fairwarning.live_check.checks.polls import check_polls_go_on, check_writes_come_back
from fairwarning.live_check.records import Records

__all__ = ["CHECKS", "NO_BUG", "Finding", "check"]


def check_processes(evidence: Evidence) -> Iterator[Finding]:
    for change in evidence.records.nodes:
        if change.change == "died":
            yield Finding(NO_BUG, change.node, f"a server ended by itself: {change.detail}")
        elif change.change == "error":
            yield Finding(NO_BUG, change.node, f"its log tells of a bug: {change.detail}")


CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    check_never_early,
    check_notice,
    check_leaving,
    check_domains,
    check_once,
    check_answers,
    check_approvals,
    documents.check_documents,
    documents.check_reads_go_forward,
    documents.check_seen,
    check_barrier,
    documents.check_ends,
    check_polls_go_on,
    check_writes_come_back,
    check_processes,
)


def check(records: Records) -> list[Finding]:
    """Returns a finding for every promise that was broken. The list is empty if all is well."""
    evidence = Evidence(records)
    return [finding for each in CHECKS for finding in each(evidence)]
