"""Which status a refusal gets. Each code is in the list once, so a new one needs its line here."""

import json

from fairwarning.core.refusals import Code, Refused
from fairwarning.operator_api.problems import Problem, of_bug, of_outage, of_refusal, of_stop


def test_what_is_missing_cannot_be_or_is_in_the_way() -> None:
    found = {code.value: of_refusal(Refused(code, "so")).status for code in Code}
    missing = {code for code, status in found.items() if status == 404}
    cannot_be = {code for code, status in found.items() if status == 422}
    assert missing == {each for each in found if each.startswith("unknown-")} | {"instance-deleted"}
    assert cannot_be >= {"no-target", "not-in-scope", "spans-update-domains", "fleet-invalid",
                         "name-invalid", "description-too-long"}  # fmt: skip
    for code in ("notice-too-short", "event-finished", "scope-full", "instance-exists"):
        assert found[code] == 409


def test_a_problem_leaves_out_what_is_not_known() -> None:
    problem = Problem(422, "body-invalid", "mend it", pointer=None, line=3)
    assert json.loads(problem.body()) == {
        "type": "https://fairwarning.invalid/problems/body-invalid",
        "title": "Body invalid",
        "status": 422,
        "code": "body-invalid",
        "detail": "mend it",
        "line": 3,
    }


def test_who_may_come_again_is_told_when() -> None:
    told = [(each.status, each.headers.get("Retry-After")) for each in (
        of_outage(), of_stop(), of_bug(),
    )]  # fmt: skip
    assert told == [(503, "1"), (503, "5"), (500, None)]
