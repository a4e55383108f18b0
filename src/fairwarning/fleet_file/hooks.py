"""This module reads the hooks of a resource, and finds the place of each mistake."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fairwarning.common.durations import DURATION_EXAMPLES, human_ms, parse_duration_ms
from fairwarning.common.toml_table import suggestion
from fairwarning.core.driver_settings import is_http_url
from fairwarning.core.hooks import (
    HOOK_NAME_CHARS_MAX,
    HOOK_PAUSE_MS_MAX,
    HOOK_RETRIES_MAX,
    HOOK_TIMEOUT_MS_MAX,
    HOOK_TIMEOUT_MS_MIN,
    HOOK_WORDS_MAX,
    HOOKS_MAX,
    Hook,
    Hooks,
    HookStage,
    OnFailure,
)
from fairwarning.core.limits import refuse_text
from fairwarning.fleet_file.problems import Where

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_KEYS = ("run", "url", "secret_env", "name", "timeout", "retries", "pause", "on_failure")
_STAGES = tuple(HookStage)


def hooks_of(table: Mapping[str, Any] | None, where: Where) -> Hooks:
    """Return the hooks of a table with the lists `before` and `after`. None means no hooks."""
    given = table or {}
    for key in given:
        if key not in _STAGES:
            where[key].wrong(f"`{key}` is no list of hooks; {suggestion(key, _STAGES)}")
    return Hooks(**{stage: _listed(given.get(stage, ()), stage, where[stage]) for stage in _STAGES})


def _listed(hooks: object, stage: HookStage, where: Where) -> tuple[Hook, ...]:
    if not isinstance(hooks, Sequence) or isinstance(hooks, str):
        where.wrong(f"`{stage}` must be a list of tables, one for each hook")
        return ()
    if len(hooks) > HOOKS_MAX:
        where.wrong(f"these are {len(hooks)} hooks {stage} an impact; use at most {HOOKS_MAX}")
        return ()
    return tuple(_hook(each, stage, where[number]) for number, each in enumerate(hooks))


def _hook(table: object, stage: HookStage, where: Where) -> Hook:
    if not isinstance(table, dict):
        where.wrong('a hook is a table, as in { run = ["/usr/local/bin/alarm", "off"] }')
        return Hook()
    keys = _KEYS if stage is HookStage.BEFORE else _KEYS[:-1]
    for key in table:
        if key not in keys:
            where[key].wrong(f"a hook {stage} an impact has no `{key}`; {suggestion(key, keys)}")
    if ("run" in table) == ("url" in table):
        where.wrong("a hook needs either `run` or `url`")
    if "secret_env" in table and "url" not in table:
        where["secret_env"].wrong("`secret_env` signs what is posted to a `url`; take it out")
    return _checked(table, where)


def _checked(table: Mapping[str, Any], where: Where) -> Hook:
    usual = Hook()
    return Hook(
        run=_words(table["run"], where["run"]) if "run" in table else (),
        url=_url(table["url"], where["url"]) if "url" in table else "",
        secret_env=_variable(table.get("secret_env", ""), where["secret_env"]),
        name=_name(table.get("name", ""), where["name"]),
        timeout_ms=_duration_ms(
            table, "timeout", usual.timeout_ms, (HOOK_TIMEOUT_MS_MIN, HOOK_TIMEOUT_MS_MAX), where
        ),
        retries=_retries(table.get("retries", usual.retries), where["retries"]),
        pause_ms=_duration_ms(table, "pause", usual.pause_ms, (0, HOOK_PAUSE_MS_MAX), where),
        on_failure=_on_failure(table.get("on_failure", usual.on_failure), where["on_failure"]),
    )


def _words(words: object, where: Where) -> tuple[str, ...]:
    is_list = isinstance(words, list) and all(isinstance(each, str) for each in words)
    if not isinstance(words, list) or not is_list or not words or not words[0]:
        where.wrong('`run` must be a list of words, as in ["/usr/local/bin/alarm", "off"]')
        return ()
    if len(words) > HOOK_WORDS_MAX:
        where.wrong(f"`run` has {len(words)} words; use at most {HOOK_WORDS_MAX}")
    if any("\0" in each for each in words):
        where.wrong("`run` has a NUL character, which no program can get; take it out")
    with where:
        refuse_text("hook", "".join(words))
    return tuple(words)


def _url(url: object, where: Where) -> str:
    if not isinstance(url, str) or not is_http_url(url):
        where.wrong("`url` is no address; give one that begins with http:// or https://")
        return ""
    with where:
        refuse_text("hook", url)
    return url


def _variable(name: object, where: Where) -> str:
    if name == "":
        return ""
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        where.wrong("`secret_env` is the name of an environment variable; give a name")
        return ""
    return name


def _name(name: object, where: Where) -> str:
    if not isinstance(name, str) or len(name) > HOOK_NAME_CHARS_MAX or not _is_printable(name):
        where.wrong(f"`name` must be a text of up to {HOOK_NAME_CHARS_MAX} printable characters")
        return ""
    return name


def _is_printable(name: str) -> bool:
    return not name or name.isprintable()


def _duration_ms(
    table: Mapping[str, Any], key: str, usual_ms: int, limits_ms: tuple[int, int], where: Where
) -> int:
    value = table.get(key)
    if value is None:
        return usual_ms
    found_ms = parse_duration_ms(value) if isinstance(value, str) else None
    least_ms, most_ms = limits_ms
    if found_ms is None:
        where[key].wrong(f"`{key}` must be a duration in quotes, like {DURATION_EXAMPLES}")
    elif not least_ms <= found_ms <= most_ms:
        where[key].wrong(
            f"`{key}` is out of range; use {human_ms(least_ms)} to {human_ms(most_ms)}"
        )
    return found_ms or 0


def _retries(retries: object, where: Where) -> int:
    is_number = isinstance(retries, int) and not isinstance(retries, bool)
    if not isinstance(retries, int) or not is_number or not 0 <= retries <= HOOK_RETRIES_MAX:
        where.wrong(f"`retries` must be a whole number from 0 to {HOOK_RETRIES_MAX}")
        return 0
    return retries


def _on_failure(choice: object, where: Where) -> OnFailure:
    if not isinstance(choice, str) or choice not in tuple(OnFailure):
        where.wrong(f"`on_failure` must be one of {', '.join(map(repr, map(str, OnFailure)))}")
        return OnFailure.FAIL
    return OnFailure(choice)
