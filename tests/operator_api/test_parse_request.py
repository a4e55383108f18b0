"""What is wrong with a query or a body is said with the place of the mistake."""

from collections.abc import Callable

import pytest
from msgspec import Struct, field

from fairwarning.engine.clocks import VirtualClock
from fairwarning.operator_api.parse_request import (
    checked_position,
    decoded_json,
    decoded_text,
    read_body,
    read_document,
    read_duration_ms,
    read_instant,
    read_query,
)
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.schemas import In
from fairwarning.stores.memory import MemoryStore

JSON = "application/json"


class Asked(In, kw_only=True):
    limit: int = 3
    scope: list[str] = field(default_factory=list)


class Inner(Struct):
    size: int


class Body(Struct, kw_only=True):
    parts: list[Inner] = []
    name: str = "none"


def problem_of(work: Callable[[], object]) -> Problem:
    with pytest.raises(Problem) as caught:
        work()
    return caught.value


def test_a_parameter_has_its_type_and_comes_once_unless_it_is_a_list() -> None:
    found = read_query(Asked, [("limit", "7"), ("scope", "a"), ("scope", "b")])
    assert (found.limit, found.scope) == (7, ["a", "b"])
    assert read_query(Asked, []).limit == 3
    twice = problem_of(lambda: read_query(Asked, [("limit", "7"), ("limit", "7")]))
    assert (twice.status, twice.code) == (422, "parameter-twice")
    wrong = problem_of(lambda: read_query(Asked, [("limit", "x")]))
    assert (wrong.code, wrong.more["pointer"]) == ("parameter-invalid", "/limit")
    unknown = problem_of(lambda: read_query(Asked, [("Limit", "7")]))
    assert unknown.code == "unknown-parameter"
    assert unknown.detail.endswith("it has limit, scope, why")


def test_a_body_is_json_and_its_mistake_has_a_place() -> None:
    assert read_body(Body, b'{"parts":[{"size":1}]}', JSON, optional=False).parts[0].size == 1
    wrong = problem_of(lambda: read_body(Body, b'{"parts":[{"size":"x"}]}', JSON, optional=False))
    assert (wrong.status, wrong.code, wrong.more["pointer"]) == (
        422, "body-invalid", "/parts/0/size"
    )  # fmt: skip
    whole = problem_of(lambda: read_body(Body, b"[]", JSON, optional=False))
    assert (whole.code, whole.more) == ("body-invalid", {})
    for body in (b"{", b"", b'{"name":"\xff"}', b'{"more":' + b"[" * 100_000):
        malformed = problem_of(lambda body=body: read_body(Body, body, JSON, optional=False))  # type: ignore[misc]
        assert (malformed.status, malformed.code) == (400, "body-malformed")
        assert len(malformed.detail) <= 300


def test_only_what_is_optional_may_be_left_out() -> None:
    assert read_body(Body, b"", "", optional=True).name == "none"
    assert read_body(None, b" null\n", "", optional=False) is None
    unwanted = problem_of(lambda: read_body(None, b'{"a":1}', JSON, optional=True))
    assert (unwanted.status, unwanted.code) == (422, "body-not-wanted")
    for given in ("", "text/plain", "application/toml"):
        kind = problem_of(lambda given=given: read_body(Body, b"{}", given, optional=True))  # type: ignore[misc]
        assert (kind.status, kind.code) == (415, "media-type-unknown")


def test_a_fleet_is_toml_or_json() -> None:
    assert read_document(b"", "application/toml").is_toml
    assert not read_document(b"", JSON).is_toml
    assert problem_of(lambda: read_document(b"", "text/plain")).status == 415
    assert problem_of(lambda: decoded_text(b"a\nb\n\xff\n")).more["line"] == 3
    assert decoded_text("ü".encode()) == "ü"
    assert decoded_json(b"[1]") == [1]
    assert problem_of(lambda: decoded_json(b"[" * 100_000)).status == 400


def test_durations_and_times_are_named_with_their_field() -> None:
    assert read_duration_ms("notice", "15m") == 900_000
    assert read_instant("notBefore", "1970-01-01T00:00:01Z") == 1_000
    duration = problem_of(lambda: read_duration_ms("notice", "x" * 99))
    assert (duration.status, duration.code, duration.more) == (
        422, "duration-invalid", {"pointer": "/notice"}
    )  # fmt: skip
    assert "x" * 61 not in duration.detail
    instant = problem_of(lambda: read_instant("notBefore", "1970-01-01T00:00:01"))
    assert (instant.code, instant.more) == ("instant-invalid", {"pointer": "/notBefore"})


async def test_a_position_has_the_form_of_one() -> None:
    store = MemoryStore(VirtualClock())
    assert await checked_position(store, "9" * 18) == "9" * 18
    for text in ("9" * 19, "", "-1", "1-", "x", "1\n", "²"):
        with pytest.raises(Problem) as caught:
            await checked_position(store, text)
        assert caught.value.code == "cursor-invalid"
