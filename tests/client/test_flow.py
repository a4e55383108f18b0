"""What is asked next: versions, tags, holding, and patience."""

from collections.abc import Callable

import pytest

from fairwarning.client.flow import (
    ASK_AGAIN_S,
    BACKOFF_S_MAX,
    EARLY_MAX,
    FIRST_TIMEOUT_S,
    POLL_S,
    RENEGOTIATES_AFTER,
    TIMEOUT_S,
    TRIES_EVERY_MAX,
    UNCHANGED_MAX,
    VERSIONS,
    Flow,
    Response,
    approval,
)

EMPTY = b'{"DocumentIncarnation":1,"Events":[]}'
OK = Response(status=200, body=EMPTY)
TAGGED = Response(status=200, body=EMPTY, headers={"etag": '"1-x"'})


def test_the_first_call_may_take_minutes_and_the_next_may_not() -> None:
    flow = Flow()
    assert flow.poll(waits=True).timeout_s == FIRST_TIMEOUT_S
    flow, outcome = flow.take(OK, held=False, took_s=1)
    assert outcome.document is not None
    assert flow.poll(waits=True).timeout_s == TIMEOUT_S


def test_a_service_without_tags_is_polled_once_a_second() -> None:
    flow, outcome = Flow().take(OK, held=False, took_s=0)
    assert "wait=" not in flow.poll(waits=True).target
    assert flow.pause_s(outcome, 0.5, held=False) == POLL_S


def test_a_service_with_tags_is_asked_to_hold_and_asked_again_at_once() -> None:
    flow, outcome = Flow().take(TAGGED, held=False, took_s=0)
    request = flow.poll(waits=True)
    assert request.headers["If-None-Match"] == '"1-x"'
    assert "wait=" in request.target
    assert request.timeout_s > TIMEOUT_S
    flow, outcome = flow.take(Response(status=304), held=True, took_s=50)
    assert outcome.is_unchanged
    assert flow.pause_s(outcome, 0.5, held=True) == 0


def test_a_service_that_does_not_hold_is_found_out_and_not_hammered() -> None:
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    flow, outcome = flow.take(Response(status=304), held=True, took_s=0.01)
    assert flow.pause_s(outcome, 0.5, held=True) == POLL_S
    assert "wait=" not in flow.poll(waits=True).target


def test_older_versions_are_tried_in_turn_and_the_last_refusal_is_trouble() -> None:
    flow, tried = Flow(), []
    while True:
        tried.append(flow.api_version)
        flow, outcome = flow.take(Response(status=400), held=False, took_s=0)
        if outcome.trouble:
            break
        assert flow.pause_s(outcome, 0.5, held=False) == ASK_AGAIN_S
    assert tuple(tried) == VERSIONS


def test_a_refusal_of_the_question_to_hold_costs_no_version() -> None:
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    flow, outcome = flow.take(Response(status=400), held=True, took_s=0)
    assert outcome.asks_again
    assert flow.api_version == VERSIONS[0]
    assert "wait=" not in flow.poll(waits=True).target


def test_a_refusal_later_on_costs_no_version() -> None:
    """Old versions do not show evictions, so a hiccup must not lead there."""
    flow, _ = Flow().take(OK, held=False, took_s=0)
    for _ in range(3):
        flow, outcome = flow.take(Response(status=404), held=False, took_s=0)
        assert outcome.trouble
    assert flow.api_version == VERSIONS[0]


def test_after_all_versions_were_refused_the_newest_is_tried_again_with_growing_pauses() -> None:
    flow, tried, pauses = Flow(), [], []
    for _ in range(3 * len(VERSIONS)):
        tried.append(flow.api_version)
        flow, outcome = flow.take(Response(status=404), held=False, took_s=0)
        if outcome.trouble:
            pauses.append(flow.pause_s(outcome, 1, held=False))
    assert tuple(tried) == VERSIONS * 3
    assert pauses == [1, 2, 4]


def test_a_service_that_became_another_is_asked_for_its_versions_again() -> None:
    flow, _ = Flow().take(OK, held=False, took_s=0)
    for _ in range(RENEGOTIATES_AFTER):
        flow, _ = flow.take(Response(status=400), held=False, took_s=0)
    flow, outcome = flow.take(Response(status=400), held=False, took_s=0)
    assert outcome.asks_again
    assert flow.api_version == VERSIONS[1]


def converse(
    flow: Flow, polls: int, answer: Callable[[str], Response]
) -> tuple[Flow, list[str], list[str]]:
    """So many polls, each answered by its version: the versions asked, and the troubles."""
    asked, troubles = [], []
    for _ in range(polls):
        request = flow.poll(waits=True)
        version = request.target.partition("api-version=")[2][:10]
        asked.append(version)
        flow, outcome = flow.take(
            answer(version), held="wait=" in request.target, took_s=9, asked=request.version
        )
        troubles += [outcome.trouble] if outcome.trouble else []
    return flow, asked, troubles


@pytest.mark.parametrize("document", [OK, TAGGED])
def test_a_service_that_was_still_booting_is_soon_asked_in_the_newest_version(
    document: Response,
) -> None:
    """Or an eviction would not be seen for as long as nothing else fails."""
    flow, _, _ = converse(Flow(), 5, lambda _: Response(status=404))
    flow, asked, troubles = converse(flow, 3, lambda _: document)
    assert asked == [VERSIONS[5], VERSIONS[0], VERSIONS[0]]
    assert (flow.api_version, troubles) == (VERSIONS[0], [])


def test_the_newest_version_that_an_older_service_knows_is_found_behind_its_boot() -> None:
    known = VERSIONS[2:]
    flow, _, _ = converse(Flow(), 5, lambda _: Response(status=404))
    flow, asked, troubles = converse(
        flow, 4, lambda version: OK if version in known else Response(status=400)
    )
    assert asked == [VERSIONS[5], *VERSIONS[:3]]
    assert (flow.api_version, troubles) == (known[0], [])


@pytest.mark.parametrize("document", [OK, TAGGED])
def test_an_old_service_is_asked_for_newer_versions_ever_more_seldom(document: Response) -> None:
    def answer(version: str) -> Response:
        return document if version == VERSIONS[1] else Response(status=400)

    flow, _, _ = converse(Flow(), 10, answer)
    assert flow.api_version == VERSIONS[1]
    flow, asked, troubles = converse(flow, 4 * TRIES_EVERY_MAX, answer)
    assert 3 <= asked.count(VERSIONS[0]) <= 12
    assert not troubles
    assert flow.poll(waits=True).headers.get("If-None-Match") == document.headers.get("etag")


REFUSED = Response(status=400)


@pytest.mark.parametrize("known", [*range(len(VERSIONS)), None])
@pytest.mark.parametrize("document", [OK, TAGGED])
def test_whatever_the_service_knows_it_is_asked_less_than_five_times_a_second(
    known: int | None, document: Response
) -> None:
    """Azure refuses more, and no pause may count on a slow answer."""
    flow, at_s, asked_s = Flow(), 0.0, []
    while at_s < 30:
        asked_s.append(at_s)
        request = flow.poll(waits=True)
        answer = document if request.version == known else REFUSED
        held = "wait=" in request.target
        took_s = 15.0 if held and answer is not REFUSED else 0.0
        flow, outcome = flow.take(answer, held=held, took_s=took_s, asked=request.version)
        at_s += took_s + flow.pause_s(outcome, 0, held=held)
    assert all(after - before > 1 for before, after in zip(asked_s, asked_s[4:], strict=False))


def test_a_service_that_changes_all_the_time_is_asked_less_than_five_times_a_second() -> None:
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    for number in range(2 * EARLY_MAX):
        other = Response(status=200, body=EMPTY, headers={"etag": f'"{number}"'})
        flow, outcome = flow.take(other, held=True, took_s=0.01)
        assert flow.pause_s(outcome, 0, held=True) > 0.25


def test_an_approval_uses_the_version_that_is_known_while_a_newer_one_is_tried() -> None:
    flow, _, _ = converse(Flow(), 1, lambda _: Response(status=400))
    flow, _, _ = converse(flow, 1, lambda _: OK)
    assert VERSIONS[0] in flow.poll(waits=True).target
    assert flow.api_version == VERSIONS[1]


def test_an_answer_to_another_question_is_not_taken_for_that_of_the_newest_version() -> None:
    """A poll that was held all the while may be answered when a newer version is to be tried."""
    flow, _, _ = converse(Flow(), 1, lambda _: Response(status=400))
    flow, _, _ = converse(flow, 1, lambda _: TAGGED)
    assert flow.tries == 0
    flow, _ = flow.take(TAGGED, held=True, took_s=9, asked=1)
    assert flow.api_version == VERSIONS[1]


def test_a_tag_of_an_older_version_is_not_sent_in_a_newer_one() -> None:
    """It would hide what only the newer one shows, as evictions."""
    older, newer = Flow(version=4, is_settled=True, tag='"1-x"', has_answered=True), 0
    found, _ = older.take(TAGGED, held=False, took_s=0, asked=newer)
    watching = older.with_single_request(found)
    assert watching.version == newer
    after, outcome = watching.take(TAGGED, held=True, took_s=9, asked=older.version)
    assert outcome.document is not None
    assert "If-None-Match" not in after.poll(waits=True).headers


def test_two_refusals_of_one_version_count_once() -> None:
    refused = Response(status=404)
    flow, _ = Flow().take(refused, held=False, took_s=0, asked=0)
    flow, _ = flow.take(refused, held=False, took_s=0, asked=0)
    assert flow.version == 1


def test_an_answer_that_was_held_shows_that_the_service_does_not_ignore_the_question() -> None:
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    for number in range(3 * EARLY_MAX):
        other = Response(status=200, body=EMPTY, headers={"etag": f'"{number}"'})
        flow, _ = flow.take(other, held=True, took_s=0.01)
        if number % 5 == 4:
            flow, _ = flow.take(Response(status=304), held=True, took_s=15)
    assert "wait=" in flow.poll(waits=True).target


def test_a_service_that_answers_in_full_at_once_is_not_hammered() -> None:
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    same, outcome = flow.take(TAGGED, held=True, took_s=0.01)
    assert same.pause_s(outcome, 0.5, held=True) == POLL_S
    for number in range(EARLY_MAX):
        other = Response(status=200, body=EMPTY, headers={"etag": f'"{number}"'})
        flow, outcome = flow.take(other, held=True, took_s=0.01)
    assert flow.pause_s(outcome, 0.5, held=True) == POLL_S


def test_a_held_answer_that_never_comes_leaves_time_for_an_eviction() -> None:
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    assert flow.poll(waits=True).timeout_s <= 20


def test_now_and_then_the_service_must_show_what_it_has_although_the_tag_is_right() -> None:
    """A service that began anew may have come to the same tag with other events."""
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    for _ in range(UNCHANGED_MAX):
        assert "If-None-Match" in flow.poll(waits=True).headers
        flow, _ = flow.take(Response(status=304), held=True, took_s=15)
    assert "If-None-Match" not in flow.poll(waits=True).headers
    for _ in range(UNCHANGED_MAX):
        flow, _ = flow.take(TAGGED, held=False, took_s=0)
        flow, _ = flow.take(Response(status=304), held=True, took_s=15)
        assert "If-None-Match" in flow.poll(waits=True).headers


def test_after_trouble_the_service_must_show_what_it_has() -> None:
    flow, _ = Flow().take(TAGGED, held=False, took_s=0)
    flow, _ = flow.failed("connection refused")
    assert "If-None-Match" not in flow.poll(waits=True).headers


def test_trouble_is_waited_out_longer_each_time_but_never_long() -> None:
    flow, pauses = Flow(), []
    for _ in range(8):
        flow, outcome = flow.take(Response(status=500), held=False, took_s=0)
        pauses.append(flow.pause_s(outcome, 1.0, held=False))
    assert pauses == sorted(pauses)
    assert max(pauses) <= BACKOFF_S_MAX
    assert flow.take(OK, held=False, took_s=0)[0].failures == 0


def test_retry_after_is_obeyed_within_reason() -> None:
    flow, outcome = Flow().take(
        Response(status=429, headers={"retry-after": "3"}), held=False, took_s=0
    )
    assert flow.pause_s(outcome, 0, held=False) == 3
    flow, outcome = Flow().take(
        Response(status=503, headers={"retry-after": "86400"}), held=False, took_s=0
    )
    assert flow.pause_s(outcome, 0, held=False) <= 10
    flow, outcome = Flow().take(
        Response(status=429, headers={"retry-after": "0"}), held=False, took_s=0
    )
    assert flow.pause_s(outcome, 0, held=False) == ASK_AGAIN_S


def test_an_empty_body_is_trouble_and_no_empty_document() -> None:
    _, outcome = Flow().take(Response(status=200, body=b""), held=False, took_s=0)
    assert outcome.document is None
    assert outcome.is_empty
    assert "empty" in outcome.trouble
    _, outcome = Flow().take(Response(status=200, body=b"{}"), held=False, took_s=0)
    assert not outcome.is_empty


def test_an_approval_is_what_azure_documents() -> None:
    request = approval(["A", "B"], "2019-08-01")
    assert request.body == b'{"StartRequests":[{"EventId":"A"},{"EventId":"B"}]}'
    assert request.target == "/metadata/scheduledevents?api-version=2019-08-01"
    assert request.headers["Metadata"] == "true"
