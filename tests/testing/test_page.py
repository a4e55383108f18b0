"""The page "Test your handler in five minutes" works as it is printed."""

import re
from pathlib import Path

import pytest

from tests.testing.test_plugin import run

ROOT = Path(__file__).parents[2]


def test_the_tests_of_the_page_pass_with_the_example_handler(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs/test-your-handler.md").read_text()
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    (pytester.path / "test_handler.py").write_text(found[1])
    handler = ROOT / "examples/handlers/good_handler.py"
    (pytester.path / "good_handler.py").write_text(handler.read_text())
    run(pytester).assert_outcomes(passed=3)
