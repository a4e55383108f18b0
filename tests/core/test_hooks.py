"""Hooks are shown without what may be secret in them."""

import pytest

from fairwarning.core import transitions
from fairwarning.core.hooks import Hook, Hooks, HookStage
from fairwarning.core.journal_text import sentence
from tests.core.builders import E1, T0


@pytest.mark.parametrize(
    ("hook", "label"),
    [
        (Hook(run=("/usr/local/bin/alarm", "off")), "alarm"),
        (Hook(url="https://me:secret@storage.example/key"), "storage.example"),
        (Hook(run=("x",), name="alarm off"), "alarm off"),
    ],
)
def test_a_hook_without_a_name_is_called_after_what_it_calls(hook: Hook, label: str) -> None:
    assert hook.label == label


def test_neither_arguments_nor_the_secrets_of_an_address_are_shown() -> None:
    hooks = Hooks(
        before=(Hook(run=("alarm", "--key", "secret")), Hook(run=("plain",))),
        after=(Hook(url="https://me:secret@storage.example/secret"),),
    )
    shown = hooks.without_secrets
    assert "secret'" not in repr(shown)
    assert [each.run for each in shown.before] == [("alarm", "…"), ("plain",)]
    assert shown.after[0].url == "https://…@storage.example/…"


def finished(**more: object) -> transitions.HookFinished:
    values: dict[str, object] = {
        "event_id": E1, "attempt": 1, "stage": HookStage.BEFORE, "number": 1, "name": "alarm off",
        "is_done": True, "tries": 1, "took_ms": 84, "result": "exit code 0", "output": "",
        "at_ms": T0,
    }  # fmt: skip
    return transitions.HookFinished(**values | more)  # type: ignore[arg-type]


def test_a_hook_is_a_sentence_of_the_history() -> None:
    assert sentence(finished()) == "hook before 1 (alarm off) done: exit code 0, after 84 ms"
    failed = finished(is_done=False, tries=3, result="exit code 1", output="no\nroute\x1b[2J")
    assert sentence(failed) == (
        "hook before 1 (alarm off) failed on try 3: exit code 1, after 84 ms; output: no route�[2J"
    )
    assert len(sentence(finished(output="x" * 2_000))) < 300
