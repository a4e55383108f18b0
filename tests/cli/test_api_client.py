"""The connection: where it goes, what it carries, and what is said when it fails."""

import ssl
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from fairwarning.cli.api_client import Api, is_loopback
from fairwarning.common.command_errors import Disconnected, Problem
from tests.cli.conftest import Program, said
from tests.cli.fake import Answer, Fake, fake_server, problem
from tests.cli.values import an_event
from tests.support.processes import free_port

EVENTS: dict[str, Any] = {"events": [], "next": None}


def test_no_server_says_which_and_how_to_start_one() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    line = said(Program(url)("events"))
    assert url in line
    assert "fairwarning serve" in line
    assert "FAIRWARNING_URL" in line


def test_the_option_wins_over_the_environment(fake: Fake) -> None:
    fake.on("GET /events", EVENTS)
    nowhere = Program(f"http://127.0.0.1:{free_port()}")
    assert nowhere("events", "--url", f"{fake.url}/api/v1/", "--json").exit_code == 0


@pytest.mark.parametrize("url", ["", "here", "ftp://x", "http://", "http://u:p@h", "http://h:x"])
def test_what_is_no_address_is_bad_usage(url: str) -> None:
    result = Program("http://127.0.0.1:1")("events", "--url", url)
    assert result.exit_code == 2
    assert "is no address" in result.stderr


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(fake: Fake, run: Program) -> None:
    fake.on("GET /events", EVENTS)
    proxy = f"http://127.0.0.1:{free_port()}"
    assert (
        run("events", "--json", HTTP_PROXY=proxy, http_proxy=proxy, ALL_PROXY=proxy).exit_code == 0
    )
    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert not is_loopback("fw.example")


def test_the_token_comes_from_the_environment_or_a_file(
    fake: Fake, run: Program, tmp_path: Path
) -> None:
    fake.on("GET /events", EVENTS)
    (tmp_path / "token").write_text("fw_file\n")
    run("events", "--json")
    run("events", "--json", FAIRWARNING_TOKEN="fw_env")
    run("events", "--json", "--token-file", f"{tmp_path}/token", FAIRWARNING_TOKEN="fw_env")
    sent = [asked.headers.get("authorization") for asked in fake.asked]
    assert sent == [None, "Bearer fw_env", "Bearer fw_file"]


@pytest.mark.parametrize("text", ["two words", "fw_ü", "fw_\x01"])
def test_what_is_no_token_is_bad_usage_and_not_repeated(text: str, run: Program) -> None:
    result = run("events", FAIRWARNING_TOKEN=text)
    assert result.exit_code == 2
    assert text not in result.output


def test_a_token_file_that_is_not_there_is_bad_usage(run: Program, tmp_path: Path) -> None:
    result = run("events", "--token-file", f"{tmp_path}/none")
    assert result.exit_code == 2
    assert f"{tmp_path}/none" in result.stderr


def test_a_refusal_is_its_sentence_and_its_code(fake: Fake, run: Program) -> None:
    fake.on("GET /events", problem(409, "too-soon", "wait\nfive \x1b[31mminutes"))
    line = said(run("events"))
    assert line.endswith("minutes (too-soon)")
    assert "\x1b" not in line


def test_without_a_token_it_says_where_one_goes(fake: Fake, run: Program) -> None:
    fake.on("GET /events", problem(401, "token-needed", "say who you are"))
    assert "--token-file" in said(run("events"))
    assert "--token-file" not in said(run("events", FAIRWARNING_TOKEN="fw_old"))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, b"<html>hello", "text/html"),
        Answer(502, b"bad gateway", "text/plain"),
        Answer(302, b"", "text/plain"),
        Answer(200, b"[1]", "application/json"),
    ],
)
def test_a_stranger_is_recognised(answer: Answer, fake: Fake, run: Program) -> None:
    fake.on("GET /events", answer)
    assert "FAIRWARNING_URL" in said(run("events", "--json"))


def test_a_lost_answer_is_asked_for_again_under_the_same_key(fake: Fake, run: Program) -> None:
    fake.on("POST /events", Answer(breaks=True), an_event())
    assert run("schedule", "reboot", "web-0", "--json").exit_code == 0
    first, second = fake.of("POST /events")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_two_commands_never_share_a_key(fake: Fake, run: Program) -> None:
    fake.on("POST /events", an_event())
    run("schedule", "reboot", "web-0", "--json")
    run("schedule", "reboot", "web-0", "--json")
    assert len({asked.headers["idempotency-key"] for asked in fake.asked}) == 2


def test_what_cannot_be_repeated_says_to_look_first(fake: Fake, run: Program) -> None:
    fake.on("DELETE /tokens/T1", Answer(breaks=True))
    assert "fairwarning history" in said(run("token", "revoke", "T1"))
    assert len(fake.asked) == 1


def test_names_are_one_segment_of_the_path(fake: Fake, run: Program) -> None:
    fake.on("POST /instances/shop/FrontEnd_IN_0/restart", an_event())
    assert run("restart", "shop/FrontEnd_IN_0", "--json").exit_code == 0
    for name in ("", ".", ".."):
        assert run("restart", name).exit_code == 2


def test_pages_are_read_to_the_end_and_no_further_than_asked(fake: Fake, run: Program) -> None:
    def page(start: int, count: int) -> dict[str, object]:
        return {
            "events": [an_event(id=f"E{n}") for n in range(start, start + count)],
            "next": f"E{start + count - 1}",
        }

    fake.on("GET /events", page(0, 200), page(200, 50))
    result = run("events", "--limit", "250", "--json")
    assert result.exit_code == 0
    first, second = (asked.query for asked in fake.asked)
    assert (first["limit"], second["limit"]) == (["200"], ["50"])
    assert second["after"] == ["E199"]
    assert result.stdout.count('"id"') == 250


def test_a_file_of_certificates_must_be_one(run: Program, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    result = run("events", "--url", "https://fw.example", "--ca-file", f"{tmp_path}/ca.pem")
    assert result.exit_code == 2
    assert "PEM" in result.stderr


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_stream_that_may_come_back_is_only_lost(status: int, fake: Fake) -> None:
    fake.on("GET /stream", problem(status, "too-many-streams", "come again later"))
    with closing(Api(fake.url)) as api, pytest.raises(Disconnected), api.stream(None):
        pass


@pytest.mark.parametrize("status", [401, 403, 422])
def test_a_stream_that_is_refused_does_not_come_back(status: int, fake: Fake) -> None:
    fake.on("GET /stream", problem(status, "no", "not for you"))
    with closing(Api(fake.url)) as api, pytest.raises(Problem, match="not for you"), api.stream(""):
        pass


def test_a_stream_is_taken_up_where_it_was_left(fake: Fake) -> None:
    fake.on("GET /stream", Answer(200, b"data: x\n\n", "text/event-stream"))
    with closing(Api(fake.url)) as api:
        for after in (None, "17"):
            with api.stream(after) as lines:
                assert list(lines) == ["data: x", ""]
    sent = [each.headers.get("last-event-id") for each in fake.asked]
    assert sent == [None, "17"]


def test_moving_the_clock_may_take_long(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers when all that became due has happened."""
    fake.on("POST /clock/advance", {})
    fake.on("POST /events", {})
    patience: list[float] = []
    real = httpx.Client.send

    def send(self: httpx.Client, request: httpx.Request, **more: Any) -> httpx.Response:
        patience.append(request.extensions["timeout"]["read"])
        return real(self, request, **more)

    monkeypatch.setattr(httpx.Client, "send", send)
    with closing(Api(fake.url)) as api:
        api.post("events")
        api.post("clock", "advance")
    assert patience == [60, 600]


def test_http_to_a_port_with_tls_is_told_so() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with fake_server(context) as fake:
        plain = fake.url.replace("https://", "http://")
        line = said(Program(plain)("events"))
        assert f"{plain} speaks TLS" in line
        assert fake.url in line


def test_https_to_a_plain_port_is_told_so(fake: Fake) -> None:
    safe = fake.url.replace("http://", "https://")
    line = said(Program(safe)("events"))
    assert "does not speak TLS" in line
    assert fake.url in line


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ReadTimeout("slow"), "took too long to answer"),
        (httpx.ConnectTimeout("slow"), "no server answers at"),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] no"), "is not trusted"),
        (httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER]"), "does not speak TLS"),
        (httpx.CloseError("gone"), "the connection to https://fw.example broke (gone)"),
    ],
)
def test_each_way_not_to_answer_says_what_to_do(error: httpx.TransportError, words: str) -> None:
    api = Api("https://fw.example")
    with closing(api):
        assert words in api._unanswered(error).message
