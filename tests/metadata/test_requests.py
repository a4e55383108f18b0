"""What a head and a body mean: letter case, limits, repeated parameters and hosts."""

import json

import pytest

from fairwarning.metadata import responses
from fairwarning.metadata.requests import (
    AGENT_CHARS_MAX,
    NAME_PARTS_MAX,
    Head,
    Kind,
    Request,
    parse_request,
    read_event_id,
    read_event_ids,
)
from fairwarning.metadata.responses import Response
from fairwarning.metadata.settings import START_REQUESTS_MAX, WAIT_S_MAX, EndpointRules

EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
AZURE = EndpointRules()
ID = "602D9444-D2CD-49C7-8624-8643E7171297"


def parsed(
    target: str, rules: EndpointRules = AZURE, *, method: str = "GET", **headers: str
) -> Request | Response:
    named = {name.replace("_", "-"): [value] for name, value in headers.items()}
    head = Head(method=method, target=target, headers={"metadata": ["true"], **named})
    return parse_request(head, rules)


def accepted(target: str, rules: EndpointRules = AZURE, **more: str) -> Request:
    found = parsed(target, rules, **more)
    assert isinstance(found, Request)
    return found


def refused(target: str, rules: EndpointRules = AZURE, **more: str) -> Response:
    found = parsed(target, rules, **more)
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize(
    "target",
    [
        "/Metadata/ScheduledEvents?API-Version=2020-07-01",
        "//metadata//scheduledevents/?api-version=2020-07-01",
        "/%6detadata/scheduledevents?api-version=2020-07-01",
        "HTTP://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01",
    ],
)
def test_letter_case_and_slashes_do_not_matter(target: str) -> None:
    assert accepted(target).kind is Kind.EVENTS


@pytest.mark.parametrize("target", ["*", "metadata/scheduledevents", "/", "/meta/versions", ""])
def test_what_is_no_path_of_ours_is_not_found(target: str) -> None:
    assert refused(target) is responses.NOT_FOUND


@pytest.mark.parametrize("word", ["true", "True", "TRUE"])
def test_the_value_of_the_metadata_header_is_read_in_any_case(word: str) -> None:
    assert accepted(EVENTS, metadata=word).kind is Kind.EVENTS


@pytest.mark.parametrize("values", [[], ["false"], ["true", "true"], ["true", "false"]])
def test_the_metadata_header_is_sent_once_and_is_true(values: list[str]) -> None:
    head = Head(method="GET", target=EVENTS, headers={"metadata": values})
    assert parse_request(head, EndpointRules()) is responses.NO_METADATA_HEADER


def test_only_an_approval_of_an_operator_who_is_lenient_needs_no_metadata_header() -> None:
    lenient = EndpointRules(is_header_optional_on_post=True)
    assert accepted(EVENTS, lenient, method="POST", metadata="no").kind is Kind.APPROVE
    for target, method in ((EVENTS, "GET"), ("/metadata/fairwarning/drained", "POST")):
        answer = refused(target, lenient, method=method, metadata="no")
        assert answer is responses.NO_METADATA_HEADER


def test_an_oldest_version_excuses_the_header_on_approvals_alone() -> None:
    old = "/metadata/scheduledevents?api-version=2017-03-01"
    assert accepted(old, method="POST", metadata="no").kind is Kind.APPROVE
    assert refused(old, metadata="no") is responses.NO_METADATA_HEADER


@pytest.mark.parametrize(
    ("wait", "is_valid"),
    [
        ("0", True), ("007", True), (str(WAIT_S_MAX), True), (str(WAIT_S_MAX + 1), False),
        ("0001", False), ("", False), ("-1", False), ("1.5", False), ("²", False), ("٣", False),
    ],
)  # fmt: skip
def test_a_wait_is_a_whole_number_up_to_its_limit(wait: str, is_valid: bool) -> None:
    found = parsed(f"{EVENTS}&wait={wait}")
    assert isinstance(found, Request) is is_valid
    assert found == responses.BAD_WAIT or (isinstance(found, Request) and found.wait_s == int(wait))


def test_a_wait_that_is_not_held_is_checked_all_the_same() -> None:
    rules = EndpointRules(holds_polls=False)
    assert accepted(f"{EVENTS}&wait=300", rules).wait_s == 0
    assert refused(f"{EVENTS}&wait=soon", rules) is responses.BAD_WAIT


def test_a_parameter_is_sent_once_in_any_case() -> None:
    assert refused(f"{EVENTS}&API-VERSION=2020-07-01") is responses.DUPLICATE_PARAMETER
    assert refused(f"{EVENTS}&wait=%ff") is responses.BAD_QUERY


def test_the_number_of_parameters_has_a_limit() -> None:
    assert accepted(EVENTS + "".join(f"&p{n}=" for n in range(31))).kind is Kind.EVENTS
    assert refused(EVENTS + "".join(f"&p{n}=" for n in range(32))) is responses.BAD_QUERY


@pytest.mark.parametrize(
    ("rules", "version", "status"),
    [
        (EndpointRules(), "2024-07-09", 400),
        (EndpointRules(newest_version="2024-07-09"), "2024-07-09", None),
        (EndpointRules(newest_version="2019-08-01"), "2019-08-01", None),
        (EndpointRules(newest_version="2019-08-01"), "2020-07-01", 400),
        (EndpointRules(unknown_version_status=404), "2020-07-02", 404),
        (EndpointRules(unknown_version_status=404), "LATEST", 404),
        (EndpointRules(unknown_version_status=404), "", 400),
    ],
)
def test_which_versions_are_known(rules: EndpointRules, version: str, status: int | None) -> None:
    found = parsed(f"/metadata/scheduledevents?api-version={version}", rules)
    assert (found.status if isinstance(found, Response) else None) == status


def test_an_unknown_version_is_answered_with_the_three_newest() -> None:
    rules = EndpointRules(newest_version="2019-08-01")
    body = refused("/metadata/scheduledevents?api-version=1", rules).body
    assert json.loads(body)["newest-versions"] == ["2019-08-01", "2019-04-01", "2019-01-01"]


@pytest.mark.parametrize(
    "ending", ["/latest/scheduledevents", "/scheduledevents?api-version=Latest"]
)
def test_who_asks_for_the_latest_version_is_told_of_those_that_are_accepted(ending: str) -> None:
    rules = EndpointRules(newest_version="2019-08-01", unknown_version_status=404)
    answer = refused(f"/metadata{ending}", rules)
    told = json.loads(answer.body)
    assert answer.status == 404
    assert told["newest-versions"] == ["2019-08-01", "2019-04-01", "2019-01-01"]
    assert "2020-07-01" not in told["error"]


@pytest.mark.parametrize(
    ("target", "method", "allowed"),
    [
        (EVENTS, "PUT", "GET, POST"),
        (EVENTS, "HEAD", "GET, POST"),
        ("/metadata/versions", "POST", "GET"),
        ("/metadata/instance?api-version=2021-02-01", "POST", "GET"),
        ("/metadata/fairwarning/drained", "DELETE", "GET, POST"),
    ],
)
def test_another_method_is_told_which_are_allowed(target: str, method: str, allowed: str) -> None:
    answer = refused(target, method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)


def test_the_format_of_the_instance_metadata_is_read_in_any_case() -> None:
    target = "/metadata/instance/Compute/Name?api-version=2021-02-01"
    assert accepted(f"{target}&format=TEXT").is_text
    assert not accepted(f"{target}&format=Json").is_text
    assert accepted(target).path == ("compute", "name")
    assert refused(f"{target}&format=xml") is responses.BAD_FORMAT


def test_the_base_path_ends_at_the_first_metadata_after_a_name() -> None:
    assert accepted(f"/VM/web-0{EVENTS}").vm == "web-0"
    assert accepted(f"/vm/metadata{EVENTS}").vm == "metadata"
    assert accepted(f"/vm/Set/web-0{EVENTS}").vm == "Set/web-0"
    assert refused(f"/vm{EVENTS}") is responses.NOT_FOUND
    most = "/".join(["part"] * NAME_PARTS_MAX)
    assert accepted(f"/vm/{most}{EVENTS}").vm == most
    assert refused(f"/vm/{most}/part{EVENTS}") is responses.NOT_FOUND


def test_a_request_is_plain_if_only_its_address_says_who_sent_it() -> None:
    rules = EndpointRules(proxy_secret="secret")
    signed = {"x_instance_id": "web-0", "x_instance_id_signature": "ab"}
    assert accepted(EVENTS, rules).is_plain
    assert not accepted(f"/vm/web-0{EVENTS}", rules).is_plain
    assert not accepted(EVENTS, rules, **signed).is_plain
    assert not accepted(EVENTS, rules, x_forwarded_for="10.0.0.1").is_plain
    assert accepted(EVENTS, rules, x_instance_id="web-0").proxied is None


def test_a_header_of_a_proxy_that_came_twice_names_nobody() -> None:
    for ids, signatures in ((["a", "b"], ["c", "d"]), (["a", "b"], ["c"]), (["a"], ["c", "d"])):
        headers = {
            "metadata": ["true"],
            "x-instance-id": ids,
            "x-instance-id-signature": signatures,
        }
        found = parse_request(Head(method="GET", target=EVENTS, headers=headers), EndpointRules())
        assert isinstance(found, Request)
        assert found.proxied is None


def test_a_long_name_of_a_client_is_cut() -> None:
    assert accepted(EVENTS, user_agent="a" * 101).agent == "a" * AGENT_CHARS_MAX


def test_several_tags_of_a_poll_are_all_compared() -> None:
    headers = {"metadata": ["true"], "if-none-match": ['"1-0-a"', '"2-0-b"']}
    found = parse_request(Head(method="GET", target=EVENTS, headers=headers), EndpointRules())
    assert isinstance(found, Request)
    assert found.tag == '"1-0-a","2-0-b"'


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({"host": "[::1]:8169", "origin": "HTTP://[::1]:8169"}, False),
        ({"host": "[fe80::1]"}, False),
        ({"host": "LocalHost.:80"}, False),
        ({"host": "localhost:80", "origin": "http://localhost"}, True),
        ({"host": "LOCALHOST", "origin": "http://localhost"}, False),
        ({"host": "10.0.0.1", "sec_fetch_site": "none"}, False),
        ({"host": "10.0.0.1", "sec_fetch_site": "same-origin"}, False),
        ({"host": "10.0.0.1", "sec_fetch_site": "cross-site"}, True),
    ],
)
def test_whether_a_web_page_may_have_sent_a_request(
    headers: dict[str, str], is_foreign: bool
) -> None:
    assert accepted(EVENTS, AZURE, **headers).is_foreign is is_foreign


def body_of(count: int) -> bytes:
    ids = [f"{n:08x}-0000-0000-0000-000000000000" for n in range(count)]
    return json.dumps({"StartRequests": [{"EventId": id} for id in ids]}).encode()


def test_one_approval_names_one_event_at_least_and_a_hundred_at_most() -> None:
    assert read_event_ids(body_of(0)) is None
    assert len(read_event_ids(body_of(START_REQUESTS_MAX)) or ()) == START_REQUESTS_MAX
    assert read_event_ids(body_of(START_REQUESTS_MAX + 1)) is None


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'"StartRequests"', b"{}", b'{"StartRequests":{}}',
        b'{"StartRequests":["%s"]}' % ID.encode(), b'{"StartRequests":[{"EventId":7}]}',
        b'{"StartRequests":[{"EventId":"%s"},{}]}' % ID.encode(), b"[" * 100_000, b"\xff",
    ],
    ids=lambda body: repr(body[:30]),
)  # fmt: skip
def test_a_wrong_body_names_no_event(body: bytes) -> None:
    assert read_event_ids(body) is None
    assert read_event_id(body) is None


def test_the_id_of_a_drained_event_is_read_in_any_case_and_nothing_else_is() -> None:
    assert read_event_id(json.dumps({"EventId": f" {ID.lower()}\n"}).encode()) == ID
    for wrong in (ID[:-1], f"{ID}0", f"{ID} {ID}", ID.replace("-", ""), "", None):
        assert read_event_id(json.dumps({"EventId": wrong}).encode()) is None


def test_ids_are_upper_case_each_once_and_what_is_none_is_nobodys() -> None:
    sent = [ID.lower(), f" {ID} ", "0" * 36, f"{ID}x"]
    body = json.dumps({"StartRequests": [{"EventId": each} for each in sent]})
    assert read_event_ids(body.encode()) == (ID, "")
