"""The documents say what the code does."""

import ast
import os
import re
from pathlib import Path

from fairwarning.core.lifecycle import LEGAL
from fairwarning.core.refusals import Code

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_every_refusal_has_its_section_and_no_other_has() -> None:
    sections = re.findall(r"^### (.+)$", (ROOT / "docs/refusals.md").read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(Code)


def test_every_other_code_that_a_caller_can_get_is_on_the_page() -> None:
    sources = [
        *ROOT.glob("src/fairwarning/operator_api/**/*.py"),
        *ROOT.glob("src/fairwarning/portal/**/*.py"),
    ]
    codes = {code for each in sources for code in _problem_codes(each)}
    assert {"body-invalid", "store-down"} <= codes, "the codes are written in another way now"
    page = (ROOT / "docs/refusals.md").read_text()
    assert not [code for code in sorted(codes - {*Code}) if f"`{code}`" not in page]
    told = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", page.partition("## Requests")[2]))
    assert not told - codes, "nobody answers so"


def _problem_codes(source: Path) -> set[str]:
    """The second argument of every `Problem(status, "code", …)`."""
    calls = (each for each in ast.walk(ast.parse(source.read_text())) if isinstance(each, ast.Call))
    return {
        str(each.args[1].value)
        for each in calls
        if isinstance(each.func, ast.Name)
        and each.func.id == "Problem"
        and isinstance(each.args[1], ast.Constant)
    }


def test_the_diagram_is_drawn_from_the_table() -> None:
    page = ROOT / "docs/lifecycle.md"
    text = page.read_text()
    drawn = re.sub(r"```mermaid\n.*?```", f"```mermaid\n{_diagram()}```", text, flags=re.DOTALL)
    if os.environ.get("UPDATE"):
        page.write_text(drawn)
    assert text == drawn, "run UPDATE=1 ./test tests/docs"


def _diagram() -> str:
    lines = ["stateDiagram-v2"]
    for phase, moves in LEGAL.items():
        for transition, target in moves.items():
            lines.append(f"    {phase or '[*]'} --> {target}: {transition.__name__}")
        if phase is not None and not moves:
            lines.append(f"    {phase} --> [*]")
    return "".join(f"{line}\n" for line in lines)


def test_every_picture_is_shown() -> None:
    shown = {name for each in DOCUMENTS for name in re.findall(r"([\w-]+\.png)", each.read_text())}
    pictures = {each.name for each in (ROOT / "docs" / "screenshots").iterdir()}
    assert pictures == shown


def test_links_lead_somewhere() -> None:
    dead = [
        f"{document.name}: {target}"
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text())
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert not dead


def test_anchors_lead_to_a_heading() -> None:
    dead = [
        f"{document.name}: {target}#{anchor}"
        for document in DOCUMENTS
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", document.read_text())
        if "://" not in target
        and anchor not in _anchors(document.parent / target if target else document)
    ]
    assert not dead


def _anchors(page: Path) -> set[str]:
    """The names that a Markdown page gives to its headings: lower case, without punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
