"""Completes names that only the server knows. Without a server there are no suggestions."""

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from fairwarning.cli.common_options import DEFAULT_URL, connect
from fairwarning.cli.lookup import UNFINISHED
from fairwarning.scenarios import library

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

ANSWER_S = 1.0  # A person who pressed Tab waits no longer.
_PAGE = 200  # One page of the API; a shell shows no more in a useful way.

Names = Callable[["Api"], Iterable[tuple[str, str]]]
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: Names) -> Complete:
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        given = ctx.params
        try:
            api = connect(
                given.get("url") or DEFAULT_URL,
                given.get("token_file"),
                given.get("ca_file"),
                answer_s=ANSWER_S,
            )
            with closing(api):
                found = dict(names(api))
        except Exception:
            return []  # a shell in the middle of a line is no place for an error message
        return [
            CompletionItem(name, help=help)
            for name, help in found.items()
            if name.startswith(incomplete)
        ]

    return complete


def _instances(api: "Api") -> Iterable[tuple[str, str]]:
    for scope in api.get("fleet", limit=_PAGE)["scopes"]:
        for instance in scope["instances"]:
            yield instance["name"], scope["id"]


def _scopes(api: "Api") -> Iterable[tuple[str, str]]:
    for scope in api.get("fleet", limit=_PAGE)["scopes"]:
        yield scope["name"], scope["id"]


def _scale_sets(api: "Api") -> Iterable[tuple[str, str]]:
    for scope in api.get("fleet", limit=_PAGE)["scopes"]:
        if scope["kind"] == "scale-set":
            yield scope["name"], scope["id"].rpartition("/")[0]


def _instances_and_scopes(api: "Api") -> Iterable[tuple[str, str]]:
    return [*_instances(api), *_scopes(api)]


def _events(api: "Api") -> Iterable[tuple[str, str]]:
    for event in api.get("events", phase=UNFINISHED, limit=_PAGE)["events"]:
        yield event["id"], f"{event['type']} of {', '.join(event['resources'])}"


def _rollouts(api: "Api") -> Iterable[tuple[str, str]]:
    for rollout in api.get("rollouts", limit=_PAGE)["rollouts"]:
        yield rollout["id"], f"{rollout['type']}, {rollout['phase']}"


def complete_scenario(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a scenario in the library, or of a file if no scenario fits."""
    names = [each for each in library.names() if each.startswith(incomplete)]
    return [CompletionItem(each) for each in names] or [CompletionItem(incomplete, type="file")]


complete_instance = _completer(_instances)
complete_scope = _completer(_scopes)
complete_scale_set = _completer(_scale_sets)
complete_target = _completer(_instances_and_scopes)
complete_event = _completer(_events)
complete_rollout = _completer(_rollouts)
