"""The driver that docs/write-a-driver.md shows is the one that a test checks as a plug-in."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_shows_exactly_the_file() -> None:
    text = (ROOT / "examples/drivers/processes.py").read_text()
    assert f"```python\n{text}```" in (ROOT / "docs/write-a-driver.md").read_text()


def test_it_has_forty_lines_of_code() -> None:
    lines = (ROOT / "examples/drivers/processes.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 42
