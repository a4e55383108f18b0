"""What counts as a failure of a command of `az`."""

import pytest

from tools.azure_cli.az import Expected, Said, problem_of

REFUSED = Expected(code=1, is_refused=True, says="NotFound")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Said(0, "[]", ""), Expected()),
        (Said(0, "", "WARNING: this is a preview"), Expected()),
        (Said(1, "", "WARNING: old\nERROR: (NotFound) no such thing\nCode: NotFound"), REFUSED),
    ],
)
def test_a_command_that_did_as_it_must_passes(said: Said, expected: Expected) -> None:
    assert problem_of(said, expected) == ""


@pytest.mark.parametrize(
    ("said", "expected", "problem"),
    [
        (Said(1, "", "ERROR: no"), Expected(), "exit code 1 instead of 0: ERROR: no"),
        (Said(2, "fatal: no", ""), Expected(), "exit code 2 instead of 0: fatal: no"),
        (Said(0, "{}", ""), REFUSED, "exit code 0 instead of 1"),
        (Said(1, "", "ERROR: NotFound\nTraceback (most recent call last):"), REFUSED, "traceback"),
        (Said(1, "", "NotFound"), REFUSED, "not one line of ERROR"),
        (Said(1, "", "ERROR: NotFound\nERROR: NotFound"), REFUSED, "not one line of ERROR"),
        (Said(1, "", "ERROR: something else"), REFUSED, "does not say 'NotFound'"),
    ],
)
def test_anything_else_is_a_failure(said: Said, expected: Expected, problem: str) -> None:
    assert problem in problem_of(said, expected)
