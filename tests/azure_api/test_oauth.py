"""Any request for an access token is read or refused."""

import base64
from urllib.parse import urlencode

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fairwarning.azure_api.oauth import OAuthError, read_grant

FORM = "application/x-www-form-urlencoded"
GRANT = b"grant_type=client_credentials"


@given(
    st.sampled_from([FORM, f"{FORM}; charset=utf-8", "text/plain", ""]),
    st.binary(max_size=60) | st.builds(lambda text: GRANT + b"&" + text, st.binary(max_size=30)),
    st.none() | st.text(max_size=20) | st.builds(
        lambda text: "Basic " + base64.b64encode(text).decode(), st.binary(max_size=20)),
)  # fmt: skip
def test_whatever_is_sent_gets_a_secret_or_a_refusal(
    media_type: str, raw: bytes, authorization: str | None
) -> None:
    try:
        found = read_grant(media_type, raw, authorization).secret
    except OAuthError as refused:
        found = str(refused)
        event(refused.code)
    assert isinstance(found, str)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_secret_arrives_as_it_was_sent(secret: str) -> None:
    form = {"grant_type": "client_credentials", "client_secret": secret}
    assert read_grant(FORM, urlencode(form).encode(), None).secret == secret


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer YTpi",
        "Basic ?",
        "Basic YQ",
        "Basic YTpjYWbD",
    ],
)
def test_a_header_that_is_not_basic_is_refused(authorization: str) -> None:
    with pytest.raises(OAuthError, match="must be Basic with client id and secret") as refused:
        read_grant(FORM, GRANT + b"&client_secret=x", authorization)
    assert (refused.value.status, refused.value.code) == (400, "invalid_request")


def test_a_header_has_the_secret_in_any_case_and_escaped() -> None:
    both = base64.b64encode(b"me%3A:a%2Bb+c:d").decode()
    assert read_grant(FORM, GRANT, f"bAsIc  {both}").secret == "a+b c:d"
