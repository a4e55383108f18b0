"""What a watch has told of is kept over a restart, as the page says."""

import re
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairwarning.client import (
    Change,
    ChangeKind,
    Document,
    Event,
    ScheduledEvents,
    Seen,
    Status,
)
from fairwarning.testing import Server

pytestmark = pytest.mark.usefixtures("polls_often")

PAGE = (Path(__file__).parents[2] / "docs/client.md").read_text()
EVENT = Event(
    id="E1",
    type="Reboot",
    status=Status.SCHEDULED,
    resources=("web-0", "web-1"),
    not_before=datetime(2026, 1, 1, tzinfo=UTC),
    duration_s=9,
)
FULL = Seen(
    incarnation=7,
    events={"E1": EVENT},
    approved=frozenset(("E1", "E2")),
    over=("E0",),
    presumed={"E3": 4},
    shown={"E1": 6},
    missed={"E1": 2},
    longest_gap=5,
    doubts=1,
    doubted=Document(incarnation=6, events=(EVENT,)),
)


def test_all_of_it_is_kept() -> None:
    assert all(getattr(FULL, each.name) != getattr(Seen(), each.name) for each in fields(Seen))
    read = Seen.from_json(FULL.to_json())
    assert read == FULL
    assert type(read.events["E1"].status) is Status
    assert Seen.from_json(Seen().to_json()) == Seen()


def test_what_another_version_wrote_is_read_as_far_as_it_is_known() -> None:
    assert Seen.from_json(b'{"incarnation": 3, "mood": "good"}') == Seen(incarnation=3)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"events": []}', '{"events": {"E1": {}}}'])
def test_what_is_something_else_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(ValueError, match="begin with Seen"):
        Seen.from_json(text)


class Killed(Exception):
    pass


def test_the_example_of_the_page_hears_each_change_that_it_is_done_with_once(
    fairwarning: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = re.search(r"```python\n([^`]*Seen\.from_json.*?)```", PAGE, re.DOTALL)
    assert found is not None
    example = found[1].replace("/var/lib/my-handler", str(tmp_path))
    url = fairwarning.vm("web-0").url
    monkeypatch.setenv("FAIRWARNING_METADATA_URL", url)
    with ScheduledEvents(url) as events:
        events.get()
    planned = fairwarning.schedule("Reboot", "web-0")
    heard: list[ChangeKind] = []

    def handle(change: Change) -> None:
        heard.append(change.kind)
        if change.kind is ChangeKind.CANCELLED:
            raise Killed
        fairwarning.cancel(planned)

    for _ in range(2):
        with pytest.raises(Killed):
            exec(example, {"handle": handle})
    assert heard == [ChangeKind.SCHEDULED, ChangeKind.CANCELLED, ChangeKind.CANCELLED]
