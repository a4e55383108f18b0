"""The service's time is what it says, though answers may be late, ahead or always the same."""

from datetime import UTC, datetime, timedelta

from fairwarning.client.service_time import ServiceTime

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_before_the_first_answer_it_is_not_known() -> None:
    assert ServiceTime().now(5.0) is None


def test_between_answers_it_goes_on() -> None:
    time = ServiceTime()
    time.update(NOON, 100.0)
    assert time.now(107.5) == after(7.5)


def test_one_answer_that_was_ahead_is_forgotten_with_the_next_ones() -> None:
    time = ServiceTime()
    time.update(NOON, 0.0)
    time.update(after(41), 1.0)
    for second in (2, 3):
        time.update(after(second), second)
    assert time.now(3.0) == after(3)


def test_it_is_followed_also_when_answers_are_held_for_long() -> None:
    time = ServiceTime()
    time.update(after(55), 0.0)
    for second in (15, 30):
        time.update(after(second), second)
    assert time.now(30.0) == after(30)


def test_a_second_passes_where_the_service_always_says_the_same() -> None:
    time = ServiceTime()
    for second in range(50):
        time.update(NOON, second)
        assert time.now(second) == after(second)


def test_whole_seconds_and_the_way_of_an_answer_are_no_step_back() -> None:
    time = ServiceTime()
    heard = []
    for poll in range(20):
        at_s = poll * 1.03
        expected = time.now(at_s)
        time.update(after(int(at_s - 0.4 * (poll % 2))), at_s)
        heard += [expected or NOON, time.now(at_s)]
    assert all(one is not None for one in heard)
    assert heard == sorted(heard, key=lambda each: each or NOON)


def test_a_clock_that_was_set_is_followed_at_once() -> None:
    time = ServiceTime()
    time.update(NOON, 0.0)
    time.update(after(-3_600), 1.0)
    assert time.now(1.0) == after(-3_600)
    time.update(after(3_600), 2.0)
    assert time.now(2.0) == after(3_600)
