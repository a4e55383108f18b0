"""Any request for an access token is read or refused."""

import base64
from urllib.parse import urlencode

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
