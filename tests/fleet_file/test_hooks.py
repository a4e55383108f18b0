"""The hooks of a fleet file become hooks of its scopes, or mistakes at their places."""

import pytest

from fairwarning.core.hooks import Hook, Hooks, OnFailure
from fairwarning.core.instants import MINUTE_MS, SECOND_MS
from fairwarning.core.resources import expand
from fairwarning.fleet_file.problems import FleetProblem
from tests.support.fleet_files import read_toml

FILE = """
[[vm]]
name = "db"
[vm.hooks]
before = [
  { name = "alarm off", run = ["/bin/alarm", "off"], retries = 2, on_failure = "go-on" },
  { url = "https://storage.example/hooks", secret_env = "SECRET", timeout = "2m", pause = "1s" },
]
after = [{ run = ["on"] }]

[[vm]]
name = "mail"
"""
TOO_MANY = f"after = [{', '.join(['{ run = [1] }'] * 9)}]"
HOOKS = Hooks(
    before=(
        Hook(name="alarm off", run=("/bin/alarm", "off"), retries=2, on_failure=OnFailure.GO_ON),
        Hook(
            url="https://storage.example/hooks",
            secret_env="SECRET",
            timeout_ms=2 * MINUTE_MS,
            pause_ms=SECOND_MS,
        ),
    ),
    after=(Hook(run=("on",)),),
)


def test_the_hooks_of_a_resource_reach_its_scope() -> None:
    db, mail = read_toml(FILE).resources
    (scope,) = expand(db)
    assert scope.roster.hooks == HOOKS
    (scope,) = expand(mail)
    assert scope.roster.hooks == Hooks()


def test_hooks_at_the_top_count_for_each_resource_without_its_own() -> None:
    top = 'hooks = { after = [{ run = ["log"] }] }\n'
    db, mail = read_toml(top + FILE).resources
    assert db.place.hooks == HOOKS
    assert mail.place.hooks == Hooks(after=(Hook(run=("log",)),))


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ("befor = []", "did you mean `before`"),
        ("before = 1", "must be a list of tables"),
        ('before = ["alarm"]', "a hook is a table"),
        ("before = [{}]", "needs either `run` or `url`"),
        ('before = [{ run = ["a"], url = "http://a" }]', "needs either `run` or `url`"),
        ('before = [{ run = "alarm off" }]', "`run` must be a list of words"),
        ("before = [{ run = [] }]", "`run` must be a list of words"),
        ("before = [{ run = [1] }]", "`run` must be a list of words"),
        ('before = [{ run = ["a\\u0000"] }]', "NUL character"),
        ('before = [{ url = "ftp://a" }]', "`url` is no address"),
        ('before = [{ url = "http://a", secret_env = "$A" }]', "name of an environment variable"),
        ('before = [{ run = ["a"], secret_env = "A" }]', "`secret_env` signs what is posted"),
        ('before = [{ run = ["a"], name = 1 }]', "`name` must be a text"),
        ('before = [{ run = ["a"], name = "a\\u001b" }]', "`name` must be a text"),
        ('before = [{ run = ["a"], timeout = 3 }]', "must be a duration in quotes"),
        ('before = [{ run = ["a"], timeout = "0s" }]', "out of range; use 1 s to 30 min"),
        ('before = [{ run = ["a"], timeout = "31m" }]', "out of range; use 1 s to 30 min"),
        ('before = [{ run = ["a"], pause = "6m" }]', "out of range; use 0 s to 5 min"),
        ('before = [{ run = ["a"], retries = 11 }]', "whole number from 0 to 10"),
        ('before = [{ run = ["a"], retries = true }]', "whole number from 0 to 10"),
        ('before = [{ run = ["a"], on_failure = "stop" }]', "'fail', 'go-on'"),
        ('after = [{ run = ["a"], on_failure = "fail" }]', "has no `on_failure`"),
        ('before = [{ run = ["a"], shell = true }]', "has no `shell`"),
        (TOO_MANY, "use at most 8"),
    ],
)
def test_a_mistake_is_named_with_its_line(hooks: str, said: str) -> None:
    with pytest.raises(FleetProblem) as caught:
        read_toml(f'[[vm]]\nname = "db"\nhooks = {{ {hooks} }}\n')
    (mistake,) = caught.value.mistakes
    assert said in mistake.message
    assert mistake.line == 3
