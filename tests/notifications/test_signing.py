"""Signatures that any library of the Standard Webhooks scheme can check."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.instants import Instant
from fairwarning.core.webhook_signatures import (
    BadSecret,
    key_of,
    secret_of,
    signature_of,
    signed_headers,
)

PAGE = Path(__file__).parents[2] / "docs/notifications.md"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_published_example_of_the_scheme() -> None:
    body = b'{"test": 2432232314}'
    signature = signature_of(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.binary(min_size=16, max_size=64))
def test_a_key_survives_being_written_as_a_secret(key: bytes) -> None:
    assert key_of(secret_of(key)) == key


@pytest.mark.parametrize(
    "secret", ["", "hunter2", SECRET.removeprefix("whsec_"), "whsec_", "whsec_ä", "whsec_aGk="]
)
def test_what_is_no_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(BadSecret) as bad:
        key_of(secret)
    assert not secret.removeprefix("whsec_") or secret not in str(bad.value)


def test_the_check_in_the_documentation_works() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    is_genuine = names["is_genuine"]
    assert callable(is_genuine)
    now_s = 1_700_000_000
    body = b'{"specversion":"1.0"}'
    headers = signed_headers(SECRET, "17", Instant(now_s * 1_000), body)
    assert is_genuine(SECRET, headers, body, now_s)
    assert is_genuine(SECRET, headers, body, now_s + 299)
    assert not is_genuine(SECRET, headers, body + b" ", now_s)
    assert not is_genuine(SECRET, headers, body, now_s + 301)
    assert not is_genuine(secret_of(b"x" * 32), headers, body, now_s)
    assert not is_genuine(SECRET, {**headers, "webhook-id": "18"}, body, now_s)
