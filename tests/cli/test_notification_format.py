"""`fairwarning notification add --format`: what a webhook gets."""

from tests.cli.conftest import Program
from tests.cli.fake import Answer, Fake

MADE = {
    "id": "N1",
    "name": "ops",
    "kind": "webhook",
    "url": "https://ops.example/…",
    "format": "eventgrid",
    "filters": {"kinds": ["Started"]},
    "created": "2026-11-16T12:00:00Z",
    "secret": "whsec",
}
ADD = ("notification", "add", "webhook", "--name", "ops")


def test_the_format_is_sent_only_if_it_is_asked_for(fake: Fake, run: Program) -> None:
    fake.on("POST /notifications", Answer(201, MADE))
    made = run(*ADD, "--format", "eventgrid", input="https://ops.example\n")
    assert made.exit_code == 0, made.output
    run(*ADD, input="https://ops.example\n")
    first, second = (asked.json for asked in fake.of("POST /notifications"))
    assert first["format"] == "eventgrid"
    assert "format" not in second
    assert "kinds" not in first["filters"]


def test_an_unknown_format_is_bad_usage(fake: Fake, run: Program) -> None:
    assert run(*ADD, "--format", "xml", input="https://ops.example\n").exit_code == 2
    assert not fake.of("POST /notifications")
