"""The README begins with a recording of the demo, which is what the demo shows today."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path

from tools.demo.record import COLUMNS, record

ROOT = Path(__file__).parents[2]


def test_the_recording_is_what_the_demo_shows() -> None:
    file, made = ROOT / "docs" / "demo.svg", record()
    if os.environ.get("UPDATE"):
        file.write_text(made)
    assert file.read_text() == made, "run UPDATE=1 ./test tests/tools/test_demo_record.py"


def test_it_is_a_picture_of_at_most_100_columns() -> None:
    lines = ["".join(each.itertext()) for each in ET.fromstring(record()).iter() if _is_text(each)]
    assert any("approves" in each for each in lines)
    assert max(map(len, lines)) <= COLUMNS


def _is_text(element: ET.Element) -> bool:
    return element.tag.endswith("}text")


def test_the_readme_begins_with_it() -> None:
    readme = (ROOT / "README.md").read_text()
    assert readme.index("./start demo") < readme.index("demo.svg") < readme.index("\n## ")
