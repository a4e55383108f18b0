"""Names that only the server knows, completed in a shell."""

import click
import pytest

from fairwarning.cli import completion
from tests.cli.fake import Fake
from tests.cli.values import ID, OTHER_ID, WEB, a_scope, an_event, an_instance


def completed(fake: Fake, complete: completion.Complete, start: str) -> dict[str, str | None]:
    ctx = click.Context(click.Command("x"))
    ctx.params = {"url": fake.url}
    return {each.value: each.help for each in complete(ctx, click.Argument(["a"]), start)}


def test_rollouts_and_events_are_told_apart_by_what_they_are(fake: Fake) -> None:
    fake.on("GET /rollouts", {"rollouts": [{"id": "R1", "type": "Reboot", "phase": "paused"}]})
    fake.on("GET /events", {"events": [an_event(), an_event(id=OTHER_ID)]})
    assert completed(fake, completion.complete_rollout, "") == {"R1": "Reboot, paused"}
    assert completed(fake, completion.complete_event, ID[:6]) == {ID: "Reboot of web-0"}


def test_instances_scopes_and_sets_begin_with_what_was_written(fake: Fake) -> None:
    sets = "sub/group/scale-set/workers/0"
    scopes = [
        {**a_scope(WEB, an_instance("web-0")), "name": "web", "kind": "availability-set"},
        {**a_scope(sets, an_instance("workers_0")), "name": "workers", "kind": "scale-set"},
    ]
    fake.on("GET /fleet", {"scopes": scopes})
    assert completed(fake, completion.complete_instance, "w") == {
        "web-0": WEB,
        "workers_0": sets,
    }
    assert completed(fake, completion.complete_scope, "wor") == {"workers": sets}
    assert completed(fake, completion.complete_scale_set, "") == {
        "workers": "sub/group/scale-set/workers"
    }
    assert set(completed(fake, completion.complete_target, "web")) == {"web-0", "web"}


def test_without_a_server_nothing_is_suggested_and_nothing_is_said(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(fake, completion.complete_event, "") == {}
    assert capsys.readouterr().err == ""


def test_a_scenario_is_one_of_the_library_or_a_file() -> None:
    ctx, argument = click.Context(click.Command("x")), click.Argument(["a"])
    found = completion.complete_scenario(ctx, argument, "nei")
    assert [each.value for each in found] == ["neighbour"]
    (file,) = completion.complete_scenario(ctx, argument, "./my")
    assert (file.value, file.type) == ("./my", "file")
