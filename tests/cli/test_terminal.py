"""What happens on a terminal: the live screen, questions, hidden prompts, Ctrl-C."""

import signal

import pytest

from tests.cli.fake import Answer, Fake, problem
from tests.cli.terminal import on_terminal
from tests.cli.test_commands import CHANGE, NOTIFICATION, PLAN
from tests.cli.test_waiting import sse
from tests.cli.values import ID, WEB, a_scope, an_entry, an_event, an_instance

ALTERNATE, NORMAL = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def watched(fake: Fake) -> Fake:
    fake.on("GET /history", {"entries": [an_entry()], "next": None})
    fake.on("GET /fleet", {"scopes": [a_scope(WEB, an_instance("web-0"))], "next": None})
    fake.on(f"GET /scopes/{WEB}", a_scope(WEB, an_instance("web-0")))
    fake.on("GET /events", {"events": [an_event()], "next": None})
    fake.on("GET /stream", sse())
    return fake


@pytest.mark.parametrize(("keys", "code"), [("q", 0), ("\x03", 0)])
def test_the_screen_gives_the_terminal_back(keys: str, code: int, watched: Fake) -> None:
    with on_terminal("watch", "--url", watched.url) as terminal:
        before = terminal.settings()
        terminal.read_until("Timeline")
        assert terminal.settings() != before
        terminal.type(keys)
        assert terminal.ended() == code
        assert terminal.settings() == before
        assert terminal.output.index(ALTERNATE) < terminal.output.index(NORMAL)
        assert "\x1b[?25h" in terminal.output[terminal.output.index("Timeline") :]
        assert "Traceback" not in terminal.output


def test_the_screen_gives_the_terminal_back_when_it_is_told_to_end(watched: Fake) -> None:
    with on_terminal("watch", "--url", watched.url) as terminal:
        before = terminal.settings()
        terminal.read_until("Timeline")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.ended() == 128 + signal.SIGTERM
        assert terminal.settings() == before
        assert NORMAL in terminal.output


def test_the_screen_follows_the_size_and_the_stream(watched: Fake) -> None:
    with on_terminal("watch", "--url", watched.url, columns=80) as terminal:
        terminal.read_until(ID[:8])
        assert ID not in terminal.text
        terminal.resize(40, 130)
        terminal.read_until(ID)
        watched.on("GET /stream", sse(an_entry(position="8", text="something new")), sse())
        terminal.read_until("something new")


def test_the_screen_says_when_the_connection_is_lost_and_comes_back(watched: Fake) -> None:
    with on_terminal("watch", "--url", watched.url) as terminal:
        terminal.read_until("connected")
        watched.on("GET /stream", Answer(503, b"", "text/plain"))
        terminal.read_until("connection lost")
        lost = len(terminal.text)
        watched.on("GET /stream", sse())
        terminal.read_until("connected", since=lost)


def test_a_refusal_ends_the_screen_with_one_line(watched: Fake) -> None:
    with on_terminal("watch", "--url", watched.url) as terminal:
        terminal.read_until("Timeline")
        watched.on("GET /stream", problem(401, "token-revoked", "the token was revoked"))
        assert terminal.ended() == 1
        after = terminal.output[terminal.output.index(NORMAL) :]
        assert "fairwarning: the token was revoked" in after
        assert "Traceback" not in after


def test_ctrl_c_ends_the_waiting_and_not_the_event(fake: Fake) -> None:
    fake.on("POST /events", an_event())
    fake.on(f"GET /events/{ID}", an_event())
    fake.on("GET /stream", sse())
    with on_terminal("schedule", "reboot", "web-0", "--wait", "--url", fake.url) as terminal:
        terminal.read_until("starts in 15:00")
        terminal.type("\x03")
        assert terminal.ended() == 1
        assert f"the event goes on; look at it with `fairwarning event show {ID}`" in terminal.text
    assert not fake.of(f"POST /events/{ID}/cancel")


@pytest.mark.parametrize(("answer", "code", "puts"), [("y\n", 0, 1), ("n\n", 1, 0)])
def test_a_question_is_asked_before_the_fleet_changes(
    answer: str, code: int, puts: int, fake: Fake
) -> None:
    fake.on("POST /fleet/plan", PLAN)
    fake.on("PUT /fleet", PLAN)
    with on_terminal("fleet", "apply", "/dev/null", "--url", fake.url) as terminal:
        terminal.read_until("Make 1 change?")
        assert f"\x1b[32m+ {CHANGE['what']}" in terminal.output
        assert not fake.of("PUT /fleet")
        terminal.type(answer)
        assert terminal.ended() == code
    assert len(fake.of("PUT /fleet")) == puts


def test_a_secret_is_not_shown_as_it_is_typed(fake: Fake) -> None:
    fake.on("POST /notifications", Answer(201, {**NOTIFICATION, "secret": ""}))
    command = ("notification", "add", "apprise", "--name", "chat", "--url", fake.url)
    with on_terminal(*command) as terminal:
        terminal.read_until("URL: ")
        terminal.type("slack://token\n")
        assert terminal.ended() == 0
        assert "token" not in terminal.text
    assert fake.of("POST /notifications")[0].json["url"] == "slack://token"


def test_no_color_is_respected(fake: Fake) -> None:
    fake.on("POST /fleet/plan", PLAN)
    with on_terminal("fleet", "apply", "/dev/null", "--url", fake.url, NO_COLOR="1") as terminal:
        terminal.read_until("Make 1 change?")
        assert "\x1b[32m" not in terminal.output


@pytest.mark.parametrize(("keys", "is_asked"), [("y\n", True), ("n\n", False)])
def test_shrinking_names_who_goes_and_asks(keys: str, is_asked: bool, fake: Fake) -> None:
    plan = {"name": "workers", "members": 3, "capacity": 1, "adds": 0}
    fake.on("POST /scopes/workers/scale/plan", {**plan, "removes": ["workers_1", "workers_2"]})
    done = {"name": "workers", "capacity": 1, "added": [], "events": [an_event()]}
    fake.on("POST /scopes/workers/scale", Answer(202, done))
    with on_terminal("scale", "workers", "1", "--url", fake.url) as terminal:
        terminal.read_until("Delete workers_1, workers_2 of workers?")
        terminal.type(keys)
        assert terminal.ended() == (0 if is_asked else 1)
    assert bool(fake.of("POST /scopes/workers/scale")) == is_asked


def test_growing_is_done_without_a_question(fake: Fake) -> None:
    plan = {"name": "workers", "members": 3, "capacity": 4, "adds": 1, "removes": []}
    fake.on("POST /scopes/workers/scale/plan", plan)
    done = {"name": "workers", "capacity": 4, "added": ["workers_3"], "events": []}
    fake.on("POST /scopes/workers/scale", Answer(202, done))
    with on_terminal("scale", "workers", "4", "--url", fake.url) as terminal:
        assert terminal.ended() == 0
        assert "+ workers_3" in terminal.text


def test_a_replacement_is_asked_for(fake: Fake) -> None:
    with on_terminal("replace", "workers_1", "--url", fake.url) as terminal:
        terminal.read_until("Delete workers_1 and put a new instance in its place?")
        terminal.type("n\n")
        assert terminal.ended() == 1
    assert not fake.asked
