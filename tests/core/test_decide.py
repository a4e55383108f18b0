"""Stories in plain text, with the answers below each line. `UPDATE=1 pytest` rewrites them."""

import os
from pathlib import Path

import pytest

from tests.core.transcript import play

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_story(story: Path) -> None:
    text = story.read_text()
    played = play(text)
    if os.environ.get("UPDATE"):
        story.write_text(played)
    assert played == text
