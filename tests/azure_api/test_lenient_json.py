"""Templates as people write them and as `az deployment` sends them."""

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.lenient_json import TooMuch, read_json, strict_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=9), below),
    max_leaves=9,
)


def test_what_az_sends_is_read() -> None:
    sent = """{"properties": {"mode": "incremental", template:{
      // who uses it: "us"
      "contentVersion": "1.0.0.0", /* "not": this */
      "variables": {"url": "https://x//y", "text": "one
two /* three */", "open": "\\"//\\""},
      "resources": [true, null, 1e5, ], // none
    }}}"""
    assert read_json(sent.encode()) == {
        "properties": {
            "mode": "incremental",
            "template": {
                "contentVersion": "1.0.0.0",
                "variables": {
                    "url": "https://x//y",
                    "text": "one\ntwo /* three */",
                    "open": '"//"',
                },
                "resources": [True, None, 1e5],
            },
        }
    }


@given(JSON)
def test_what_is_json_already_stays_what_it_is(value: Any) -> None:
    assert json.loads(strict_json(json.dumps(value))) == value


@given(st.text(alphabet='{}[],:"\\/*ab1 \n', max_size=40))
def test_any_text_is_an_object_or_an_arm_error(text: str) -> None:
    try:
        found = read_json(text.encode())
    except ArmError as error:
        found = error.failure.json()
    assert found is None or isinstance(found, dict)


@pytest.mark.parametrize("part", ["/*", '"', "a ", "a", ", ", "\\", "//", '"\\'])
def test_a_long_text_is_read_once(part: str) -> None:
    """Were it read again from each part on, this would take hours."""
    tracemalloc.start()
    try:
        with pytest.raises((msgspec.DecodeError, TooMuch)):
            msgspec.json.decode(strict_json("{" + part * 1_000_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 120_000_000


@pytest.mark.parametrize(
    ("text", "why"),
    [("[" * 200, "levels deep"), ('{"a":' * 200, "levels deep"), ("[1" + ",1" * 100, "values")],
)
def test_depth_and_count_are_limited_while_it_is_read(text: str, why: str) -> None:
    with pytest.raises(TooMuch, match=why):
        strict_json(text, 50 if why == "values" else 1_000)


@pytest.mark.parametrize("raw", [b"", b" ", b"\r\n\t"])
def test_a_body_of_nothing_but_space_is_no_body(raw: bytes) -> None:
    assert read_json(raw) is None
