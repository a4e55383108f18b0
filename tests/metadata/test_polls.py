"""GET: what a client written for Azure sees."""

import json
import re

import pytest

from fairwarning.core.api_versions import VERSIONS
from fairwarning.core.commands import Cancel
from fairwarning.metadata.settings import EndpointRules
from tests.metadata.rig import PATH, Rig, V, request

GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}")


async def test_the_first_document_is_empty_and_has_number_one(rig: Rig) -> None:
    response = await rig.ask()
    assert response.status == 200
    assert response.body == b'{"DocumentIncarnation":1,"Events":[]}'
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    assert response.headers["server"].startswith("IMDS/")
    assert GUID.fullmatch(response.headers["x-ms-request-id"])
    assert response.headers["date"].endswith(" GMT")


async def test_every_answer_has_a_request_id_of_its_own(rig: Rig) -> None:
    first, second = await rig.ask(), await rig.ask()
    assert first.headers["x-ms-request-id"] != second.headers["x-ms-request-id"]


@pytest.mark.parametrize("version", [version.name for version in VERSIONS])
async def test_each_version_is_served_as_the_core_renders_it(rig: Rig, version: str) -> None:
    await rig.schedule("web-0")
    response = await rig.ask(f"/metadata/scheduledevents?api-version={version}")
    (event,) = response.events
    assert event["Resources"] == ["_web-0" if version == "2017-03-01" else "web-0"]
    assert ("Description" in event) == (version >= "2019-04-01")
    assert ("DurationInSeconds" in event) == (version >= "2020-07-01")


async def test_the_whole_life_of_an_event_as_an_instance_sees_it(rig: Rig) -> None:
    assert (await rig.ask()).incarnation == 1
    await rig.schedule("web-0")
    seen = await rig.ask(source="127.0.1.13")
    assert (seen.incarnation, seen.events[0]["EventStatus"]) == (2, "Scheduled")
    await rig.clock.advance(15 * 60_000 + 1000)
    seen = await rig.ask()
    assert (seen.incarnation, seen.events[0]["EventStatus"]) == (3, "Started")
    assert seen.events[0]["NotBefore"] == ""
    await rig.clock.advance(60_000)
    assert (await rig.ask()).body == b'{"DocumentIncarnation":4,"Events":[]}'


async def test_an_instance_is_known_by_the_program_that_polled_last(rig: Rig) -> None:
    (member,) = rig.engine.views.by_name("web-0")
    for agent in ("one/1", "two/2", "one/1"):
        for more in ({}, {"If-None-Match": '"x"'}, {"If-None-Match": "*"}):
            member.agent = ""
            await rig.ask(headers={"Metadata": "true", "User-Agent": agent, **more})
            assert member.agent == agent, more


async def test_a_change_is_seen_by_the_very_next_poll(rig: Rig) -> None:
    client = await rig.connect()
    for number in range(1, 20, 2):
        await client.send(request())
        assert (await client.receive()).incarnation == number
        event_id = await rig.schedule()
        await client.send(request())
        assert (await client.receive()).incarnation == number + 1
        await rig.submit(rig.web, Cancel(event_id=event_id))


@pytest.mark.parametrize(
    "path",
    [
        "/metadata/scheduledEvents?api-version=2017-08-01",
        "/METADATA/SCHEDULEDEVENTS?API-VERSION=2020-07-01",
        "/metadata/scheduledevents/?api-version=2020-07-01",
        "/metadata//scheduledevents?api-version=2020-07-01",
    ],
)
async def test_the_path_is_matched_without_regard_to_case(rig: Rig, path: str) -> None:
    assert (await rig.ask(path)).status == 200


@pytest.mark.parametrize(
    "path",
    ["/metadata/latest/scheduledevents", "/metadata/scheduledevents?api-version=latest"],
)
async def test_latest_is_refused_with_the_versions_that_there_are(rig: Rig, path: str) -> None:
    response = await rig.ask(path)
    assert response.status == 400
    text = str(response.json()["error"])
    assert all(version.name in text for version in VERSIONS)


@pytest.mark.parametrize(
    "query", ["", "?api-version=", "?api-version=2018-01-01", "?api-version=x"]
)
async def test_a_bad_version_gets_azures_words(rig: Rig, query: str) -> None:
    response = await rig.ask(f"/metadata/scheduledevents{query}")
    assert response.status == 400
    assert response.body == (
        b'{"error":"Bad request. api-version is invalid or was not specified in the request. '
        b'For more information refer to aka.ms/azureimds",'
        b'"newest-versions":["2020-07-01","2019-08-01","2019-04-01"]}'
    )


async def test_a_missing_metadata_header_gets_azures_words(rig: Rig) -> None:
    for headers in ({}, {"Metadata": "false"}, {"Metadata": ""}):
        response = await rig.ask(headers=headers)
        assert response.status == 400
        assert response.body == (
            b'{ "error": "Bad request: . Required metadata header not specified" }'
        )


@pytest.mark.parametrize("value", ["true", "True", "TRUE"])
async def test_the_metadata_header_in_any_case(rig: Rig, value: str) -> None:
    assert (await rig.ask(headers={"METADATA": value})).status == 200


async def test_forwarded_requests_and_doubled_parameters_are_refused(rig: Rig) -> None:
    forwarded = {"Metadata": "true", "X-Forwarded-For": "10.0.0.1"}
    assert (await rig.ask(headers=forwarded)).status == 400
    assert (await rig.ask(f"{PATH}&api-version={V}")).status == 400
    assert (await rig.ask(f"{PATH}&a=1&A=2")).status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
async def test_other_verbs_are_not_allowed(rig: Rig, method: str) -> None:
    response = await rig.ask(method=method)
    assert response.status == 405
    assert response.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("path", ["/", "/metadata", "/metadata/identity", "/other", "/vm/web-0"])
async def test_what_does_not_exist_is_not_found(rig: Rig, path: str) -> None:
    response = await rig.ask(path)
    assert response.status == 404
    assert "Events" not in response.json()


async def test_the_tag_saves_an_unchanged_document(rig: Rig) -> None:
    first = await rig.ask()
    tag = first.headers["etag"]
    for given in (tag, tag.strip('"'), f"W/{tag}", f'"0", {tag}', "*"):
        again = await rig.ask(headers={"Metadata": "true", "If-None-Match": given})
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == tag
    await rig.schedule()
    changed = await rig.ask(headers={"Metadata": "true", "If-None-Match": tag})
    assert changed.status == 200
    assert changed.headers["etag"] != tag


@pytest.mark.parametrize("tag", ["0", "null", "1", '"2-abc"', ""])
async def test_a_foreign_tag_gets_the_document(rig: Rig, tag: str) -> None:
    response = await rig.ask(headers={"Metadata": "true", "If-None-Match": tag})
    assert response.status == 200


async def test_errors_do_not_parse_as_a_document(rig: Rig) -> None:
    for path in ("/metadata/scheduledevents", "/nowhere"):
        body = json.loads((await rig.ask(path)).body)
        assert "DocumentIncarnation" not in body


async def test_the_status_of_an_unknown_version_can_be_set() -> None:
    rig = Rig(EndpointRules(unknown_version_status=404))
    await rig.start()
    assert (await rig.ask("/metadata/scheduledevents?api-version=2024-07-09")).status == 404
    await rig.stop()
