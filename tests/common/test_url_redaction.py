"""No secret of an address is shown, whatever the address looks like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.common.url_redaction import redacted

_SECRET = st.text("abc123-_", min_size=4).map("s3cret{}".format)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example/T0/B1/secret", "https://hooks.example/…"),
        ("https://me:secret@h:8443/?key=secret", "https://…@h:8443/…"),
        ("https://hooks.example/?key=secret", "https://hooks.example/…"),
        ("https://hooks.example#secret", "https://hooks.example/…"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("http:///secret", "http://…"),
        ("http://[secret", "…"),
        ("slack://secret/T/B", "slack://…"),
        ("mailto://user:secret@example.com", "mailto://…"),
        ("secret", "…"),
    ],
)
def test_an_address_keeps_its_host_and_no_more(url: str, shown: str) -> None:
    assert redacted(url) == shown


@given(_SECRET, st.sampled_from(["https://h/{}", "http://u:{}@h", "http://h/?k={}", "tgram://{}/"]))
def test_no_part_but_the_host_is_shown(secret: str, url: str) -> None:
    assert secret not in redacted(url.format(secret))


@given(st.text())
def test_any_text_is_redacted_without_a_crash(url: str) -> None:
    assert isinstance(redacted(url), str)
