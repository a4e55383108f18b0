"""Each worker begins with some of the tests that take long."""

from tests.support.order import long_first


def test_each_worker_has_its_share_of_the_long_tests_first() -> None:
    assert long_first("ABCD", "123456", 3) == [*"AD1", *"B23", *"C456"]


def test_nothing_is_lost_or_doubled() -> None:
    for workers in range(1, 6):
        for longs in range(8):
            for shorts in range(12):
                names = [*range(longs + shorts)]
                found = long_first(names[:longs], names[longs:], workers)
                assert sorted(found) == names


def test_one_worker_has_the_long_ones_first() -> None:
    assert long_first("AB", "12", 1) == [*"AB12"]
