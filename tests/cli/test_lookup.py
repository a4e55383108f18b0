"""Names, ids and their beginnings are found in the same way for every kind of thing."""

import pytest

from tests.cli.conftest import Program, said
from tests.cli.fake import Fake

TOKENS = [
    {"id": "4f2a9c010203", "name": "ci"},
    {"id": "4f2b9c010203", "name": "nightly-backup"},
    {"id": "aaaa9c010203", "name": "nightly-report"},
]


@pytest.mark.parametrize(
    ("text", "id"),
    [("ci", "4f2a9c010203"), ("4f2b", "4f2b9c010203"), ("nightly-r", "aaaa9c010203")],
)
def test_a_token_is_found_by_its_name_or_a_beginning(
    run: Program, fake: Fake, text: str, id: str
) -> None:
    fake.on("GET /tokens", {"tokens": TOKENS, "next": None})
    fake.on(f"DELETE /tokens/{id}", {})
    assert run("token", "revoke", text).exit_code == 0
    assert len(fake.of(f"DELETE /tokens/{id}")) == 1


def test_several_that_fit_are_named(run: Program, fake: Fake) -> None:
    fake.on("GET /tokens", {"tokens": TOKENS, "next": None})
    line = said(run("token", "revoke", "nightly"))
    assert "4f2b9c010203" in line
    assert "aaaa9c010203" in line
    assert "write more" in line


def test_a_short_beginning_is_no_reference(run: Program, fake: Fake) -> None:
    fake.on("GET /tokens", {"tokens": TOKENS, "next": None})
    line = said(run("token", "revoke", "nig"))
    assert "at least 4 characters" in line
    assert "fairwarning token list" in line


def test_a_name_comes_before_the_beginning_of_another(run: Program, fake: Fake) -> None:
    rollouts = [{"id": "r-1", "name": "patches-2"}, {"id": "r-2", "name": "patches"}]
    fake.on("GET /rollouts", {"rollouts": rollouts, "next": None})
    fake.on(
        "POST /rollouts/r-2/pause", {"id": "r-2", "type": "Reboot", "phase": "paused", "steps": []}
    )
    assert run("rollout", "pause", "patches").exit_code == 0
