"""What an http action sends, and what of an address may be shown."""

import json

import pytest

from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.http import prepare
from fairwarning.agent.config.model import Http
from tests.agent.actions.contexts import context


def test_values_are_escaped_for_where_they_stand() -> None:
    prepared = prepare(
        Http(
            url="https://hub.example/{me}?why={event.description}&x=1",
            headers={"X-Why": "{event.type}: {event.description}", "Authorization": "Bearer t"},
            body='{"text": "{event.description}", "event": {event.json}}',
        ),
        context(),
    )
    assert (prepared.host, prepared.port, prepared.is_tls) == ("hub.example", 443, True)
    assert prepared.target == "/Web-1?why=says%20%22hi%22%20%26%20more&x=1"
    assert prepared.headers["X-Why"] == 'Reboot: says "hi" & more'
    assert prepared.headers["Content-Type"] == "application/json"
    body = json.loads(prepared.body)
    assert body["text"] == 'says "hi" & more'
    assert body["event"]["EventId"] == "E-1"


def test_a_body_that_is_no_json_is_text_as_it_is() -> None:
    prepared = prepare(Http(url="http://h:81", body="{event.description}!"), context())
    assert prepared.body == b'says "hi" & more!'
    assert prepared.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert (prepared.authority, prepared.target) == ("h:81", "/")


def test_user_and_password_of_the_address_become_a_header() -> None:
    prepared = prepare(Http(url="http://me:p%40ss@h/x"), context())
    assert prepared.headers["Authorization"] == "Basic bWU6cEBzcw=="
    assert prepared.authority == "h"


def test_a_header_of_the_users_replaces_ours() -> None:
    prepared = prepare(Http(url="http://h", body="a", headers={"content-type": "a/b"}), context())
    assert [value for name, value in prepared.headers.items() if name.lower() == "content-type"] \
        == ["a/b"]  # fmt: skip


@pytest.mark.parametrize("url", ["ftp://h/x", "http://", "h/x", "http://h:port/"])
def test_what_is_no_web_address_is_a_failure(url: str) -> None:
    with pytest.raises(ActionFailed, match="no web address"):
        prepare(Http(url=url), context())
