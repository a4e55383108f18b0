"""What is asked next: versions, tags, holding, and patience."""

from collections.abc import Callable

import pytest

from fairwarning.client.polling import (
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
    PollState,
    Response,
    approval,
)

EMPTY = b'{"DocumentIncarnation":1,"Events":[]}'
OK = Response(status=200, body=EMPTY)
TAGGED = Response(status=200, body=EMPTY, headers={"etag": '"1-x"'})


def test_the_first_call_may_take_minutes_and_the_next_may_not() -> None:
    state = PollState()
    assert state.poll(waits=True).timeout_s == FIRST_TIMEOUT_S
    state, outcome = state.take(OK, held=False, took_s=1)
    assert outcome.document is not None
    assert state.poll(waits=True).timeout_s == TIMEOUT_S


def test_a_service_without_tags_is_polled_once_a_second() -> None:
    state, outcome = PollState().take(OK, held=False, took_s=0)
    assert "wait=" not in state.poll(waits=True).target
    assert state.pause_s(outcome, 0.5, held=False) == POLL_S


def test_a_service_with_tags_is_asked_to_hold_and_asked_again_at_once() -> None:
    state, outcome = PollState().take(TAGGED, held=False, took_s=0)
    request = state.poll(waits=True)
    assert request.headers["If-None-Match"] == '"1-x"'
    assert "wait=" in request.target
    assert request.timeout_s > TIMEOUT_S
    state, outcome = state.take(Response(status=304), held=True, took_s=50)
    assert outcome.is_unchanged
    assert state.pause_s(outcome, 0.5, held=True) == 0


def test_a_service_that_does_not_hold_is_found_out_and_not_hammered() -> None:
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    state, outcome = state.take(Response(status=304), held=True, took_s=0.01)
    assert state.pause_s(outcome, 0.5, held=True) == POLL_S
    assert "wait=" not in state.poll(waits=True).target


def test_older_versions_are_tried_in_turn_and_the_last_refusal_is_trouble() -> None:
    state, tried = PollState(), []
    while True:
        tried.append(state.api_version)
        state, outcome = state.take(Response(status=400), held=False, took_s=0)
        if outcome.trouble:
            break
        assert state.pause_s(outcome, 0.5, held=False) == ASK_AGAIN_S
    assert tuple(tried) == VERSIONS


def test_a_refusal_of_the_question_to_hold_costs_no_version() -> None:
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    state, outcome = state.take(Response(status=400), held=True, took_s=0)
    assert outcome.asks_again
    assert state.api_version == VERSIONS[0]
    assert "wait=" not in state.poll(waits=True).target


def test_a_refusal_later_on_costs_no_version() -> None:
    """Old versions do not show evictions, so a hiccup must not lead there."""
    state, _ = PollState().take(OK, held=False, took_s=0)
    for _ in range(3):
        state, outcome = state.take(Response(status=404), held=False, took_s=0)
        assert outcome.trouble
    assert state.api_version == VERSIONS[0]


def test_after_all_versions_were_refused_the_newest_is_tried_again_with_growing_pauses() -> None:
    state, tried, pauses = PollState(), [], []
    for _ in range(3 * len(VERSIONS)):
        tried.append(state.api_version)
        state, outcome = state.take(Response(status=404), held=False, took_s=0)
        if outcome.trouble:
            pauses.append(state.pause_s(outcome, 1, held=False))
    assert tuple(tried) == VERSIONS * 3
    assert pauses == [1, 2, 4]


def test_a_service_that_became_another_is_asked_for_its_versions_again() -> None:
    state, _ = PollState().take(OK, held=False, took_s=0)
    for _ in range(RENEGOTIATES_AFTER):
        state, _ = state.take(Response(status=400), held=False, took_s=0)
    state, outcome = state.take(Response(status=400), held=False, took_s=0)
    assert outcome.asks_again
    assert state.api_version == VERSIONS[1]


def converse(
    state: PollState, polls: int, answer: Callable[[str], Response]
) -> tuple[PollState, list[str], list[str]]:
    """So many polls, each answered by its version: the versions asked, and the troubles."""
    asked, troubles = [], []
    for _ in range(polls):
        request = state.poll(waits=True)
        version = request.target.partition("api-version=")[2][:10]
        asked.append(version)
        state, outcome = state.take(
            answer(version), held="wait=" in request.target, took_s=9, asked=request.version
        )
        troubles += [outcome.trouble] if outcome.trouble else []
    return state, asked, troubles


@pytest.mark.parametrize("document", [OK, TAGGED])
def test_a_service_that_was_still_booting_is_soon_asked_in_the_newest_version(
    document: Response,
) -> None:
    """Or an eviction would not be seen for as long as nothing else fails."""
    state, _, _ = converse(PollState(), 5, lambda _: Response(status=404))
    state, asked, troubles = converse(state, 3, lambda _: document)
    assert asked == [VERSIONS[5], VERSIONS[0], VERSIONS[0]]
    assert (state.api_version, troubles) == (VERSIONS[0], [])


def test_the_newest_version_that_an_older_service_knows_is_found_behind_its_boot() -> None:
    known = VERSIONS[2:]
    state, _, _ = converse(PollState(), 5, lambda _: Response(status=404))
    state, asked, troubles = converse(
        state, 4, lambda version: OK if version in known else Response(status=400)
    )
    assert asked == [VERSIONS[5], *VERSIONS[:3]]
    assert (state.api_version, troubles) == (known[0], [])


@pytest.mark.parametrize("document", [OK, TAGGED])
def test_an_old_service_is_asked_for_newer_versions_ever_more_seldom(document: Response) -> None:
    def answer(version: str) -> Response:
        return document if version == VERSIONS[1] else Response(status=400)

    state, _, _ = converse(PollState(), 10, answer)
    assert state.api_version == VERSIONS[1]
    state, asked, troubles = converse(state, 4 * TRIES_EVERY_MAX, answer)
    assert 3 <= asked.count(VERSIONS[0]) <= 12
    assert not troubles
    assert state.poll(waits=True).headers.get("If-None-Match") == document.headers.get("etag")


REFUSED = Response(status=400)


@pytest.mark.parametrize("known", [*range(len(VERSIONS)), None])
@pytest.mark.parametrize("document", [OK, TAGGED])
def test_whatever_the_service_knows_it_is_asked_less_than_five_times_a_second(
    known: int | None, document: Response
) -> None:
    """Azure refuses more, and no pause may count on a slow answer."""
    state, at_s, asked_s = PollState(), 0.0, []
    while at_s < 30:
        asked_s.append(at_s)
        request = state.poll(waits=True)
        answer = document if request.version == known else REFUSED
        held = "wait=" in request.target
        took_s = 15.0 if held and answer is not REFUSED else 0.0
        state, outcome = state.take(answer, held=held, took_s=took_s, asked=request.version)
        at_s += took_s + state.pause_s(outcome, 0, held=held)
    assert all(after - before > 1 for before, after in zip(asked_s, asked_s[4:], strict=False))


def test_a_service_that_changes_all_the_time_is_asked_less_than_five_times_a_second() -> None:
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    for number in range(2 * EARLY_MAX):
        other = Response(status=200, body=EMPTY, headers={"etag": f'"{number}"'})
        state, outcome = state.take(other, held=True, took_s=0.01)
        assert state.pause_s(outcome, 0, held=True) > 0.25


def test_an_approval_uses_the_version_that_is_known_while_a_newer_one_is_tried() -> None:
    state, _, _ = converse(PollState(), 1, lambda _: Response(status=400))
    state, _, _ = converse(state, 1, lambda _: OK)
    assert VERSIONS[0] in state.poll(waits=True).target
    assert state.api_version == VERSIONS[1]


def test_an_answer_to_another_question_is_not_taken_for_that_of_the_newest_version() -> None:
    """A poll that was held all the while may be answered when a newer version is to be tried."""
    state, _, _ = converse(PollState(), 1, lambda _: Response(status=400))
    state, _, _ = converse(state, 1, lambda _: TAGGED)
    assert state.tries == 0
    state, _ = state.take(TAGGED, held=True, took_s=9, asked=1)
    assert state.api_version == VERSIONS[1]


def test_a_tag_of_an_older_version_is_not_sent_in_a_newer_one() -> None:
    """It would hide what only the newer one shows, as evictions."""
    older, newer = PollState(version=4, is_settled=True, tag='"1-x"', has_answered=True), 0
    found, _ = older.take(TAGGED, held=False, took_s=0, asked=newer)
    watching = older.with_single_request(found)
    assert watching.version == newer
    after, outcome = watching.take(TAGGED, held=True, took_s=9, asked=older.version)
    assert outcome.document is not None
    assert "If-None-Match" not in after.poll(waits=True).headers


def test_two_refusals_of_one_version_count_once() -> None:
    refused = Response(status=404)
    state, _ = PollState().take(refused, held=False, took_s=0, asked=0)
    state, _ = state.take(refused, held=False, took_s=0, asked=0)
    assert state.version == 1


def test_an_answer_that_was_held_shows_that_the_service_does_not_ignore_the_question() -> None:
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    for number in range(3 * EARLY_MAX):
        other = Response(status=200, body=EMPTY, headers={"etag": f'"{number}"'})
        state, _ = state.take(other, held=True, took_s=0.01)
        if number % 5 == 4:
            state, _ = state.take(Response(status=304), held=True, took_s=15)
    assert "wait=" in state.poll(waits=True).target


def test_a_service_that_answers_in_full_at_once_is_not_hammered() -> None:
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    same, outcome = state.take(TAGGED, held=True, took_s=0.01)
    assert same.pause_s(outcome, 0.5, held=True) == POLL_S
    for number in range(EARLY_MAX):
        other = Response(status=200, body=EMPTY, headers={"etag": f'"{number}"'})
        state, outcome = state.take(other, held=True, took_s=0.01)
    assert state.pause_s(outcome, 0.5, held=True) == POLL_S


def test_a_held_answer_that_never_comes_leaves_time_for_an_eviction() -> None:
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    assert state.poll(waits=True).timeout_s <= 20


def test_now_and_then_the_service_must_show_what_it_has_although_the_tag_is_right() -> None:
    """A service that began anew may have come to the same tag with other events."""
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    for _ in range(UNCHANGED_MAX):
        assert "If-None-Match" in state.poll(waits=True).headers
        state, _ = state.take(Response(status=304), held=True, took_s=15)
    assert "If-None-Match" not in state.poll(waits=True).headers
    for _ in range(UNCHANGED_MAX):
        state, _ = state.take(TAGGED, held=False, took_s=0)
        state, _ = state.take(Response(status=304), held=True, took_s=15)
        assert "If-None-Match" in state.poll(waits=True).headers


def test_after_trouble_the_service_must_show_what_it_has() -> None:
    state, _ = PollState().take(TAGGED, held=False, took_s=0)
    state, _ = state.failed("connection refused")
    assert "If-None-Match" not in state.poll(waits=True).headers


def test_trouble_is_waited_out_longer_each_time_but_never_long() -> None:
    state, pauses = PollState(), []
    for _ in range(8):
        state, outcome = state.take(Response(status=500), held=False, took_s=0)
        pauses.append(state.pause_s(outcome, 1.0, held=False))
    assert pauses == sorted(pauses)
    assert max(pauses) <= BACKOFF_S_MAX
    assert state.take(OK, held=False, took_s=0)[0].failures == 0


def test_retry_after_is_obeyed_within_reason() -> None:
    state, outcome = PollState().take(
        Response(status=429, headers={"retry-after": "3"}), held=False, took_s=0
    )
    assert state.pause_s(outcome, 0, held=False) == 3
    state, outcome = PollState().take(
        Response(status=503, headers={"retry-after": "86400"}), held=False, took_s=0
    )
    assert state.pause_s(outcome, 0, held=False) <= 10
    state, outcome = PollState().take(
        Response(status=429, headers={"retry-after": "0"}), held=False, took_s=0
    )
    assert state.pause_s(outcome, 0, held=False) == ASK_AGAIN_S


def test_an_empty_body_is_trouble_and_no_empty_document() -> None:
    _, outcome = PollState().take(Response(status=200, body=b""), held=False, took_s=0)
    assert outcome.document is None
    assert outcome.is_empty
    assert "empty" in outcome.trouble
    _, outcome = PollState().take(Response(status=200, body=b"{}"), held=False, took_s=0)
    assert not outcome.is_empty


def test_an_approval_is_what_azure_documents() -> None:
    request = approval(["A", "B"], "2019-08-01")
    assert request.body == b'{"StartRequests":[{"EventId":"A"},{"EventId":"B"}]}'
    assert request.target == "/metadata/scheduledevents?api-version=2019-08-01"
    assert request.headers["Metadata"] == "true"
