"""Makes pages of scale sets, which show changes of size, models and policies."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fairwarning.cli.table_model import Card, Cell, Shown, hint, line
from fairwarning.cli.tables.events import events_table
from fairwarning.cli.times import human_duration, parse_duration_ms
from fairwarning.common.escape import counted, several

Json = dict[str, Any]


def resized_page(resized: Json, now: datetime) -> list[Shown]:
    shown: list[Shown] = [
        line(f"Scale set {resized['name']} has {counted(resized['capacity'], 'instance')}.")
    ]
    if resized["added"]:
        shown.append(line(f"+ {several(resized['added'], 20)}", "green"))
    if resized["events"]:
        shown.append(events_table(resized["events"], now, empty=""))
    return shown


def model_page(scopes: Sequence[Json]) -> list[Shown]:
    model, name = scopes[0]["model"], scopes[0]["name"]
    behind = behind_in(*scopes)
    card = Card(
        title=Cell(f"Scale set {name}", "bold"),
        facts=(
            ("model", Cell(str(model["generation"]))),
            ("terminate notice", Cell(notice_text(model["terminateNotice"]) or "none")),
            ("reimage notice", Cell(notice_text(model["reimageNotice"]) or "none")),
            ("behind", Cell(several(behind, 20))),
        ),
    )
    how = f"They keep their own until you upgrade them: fairwarning upgrade {name}"
    return [card, hint(how, "dim")] if behind else [card]


def upgraded_page(names: Sequence[str]) -> list[Shown]:
    if not names:
        return [line("Nothing to do: they have the latest model.")]
    return [line(f"{several(list(names), 20)}: now of the latest model.")]


def policy_page(scopes: Sequence[Json]) -> list[Shown]:
    policy = scopes[0]["policy"]
    notice = ", ".join(f"{type} {notice_text(d)}" for type, d in policy["notice"].items())
    return [
        Card(
            title=Cell(", ".join(scope["id"] for scope in scopes), "bold"),
            facts=(
                ("approve reboot", _yes_no(policy["approveUserReboot"])),
                ("approve redeploy", _yes_no(policy["approveUserRedeploy"])),
                ("approve all down", _yes_no(policy["approveAllInstancesDown"])),
                ("minimum notice", Cell(notice)),
            ),
        )
    ]


def model_text(scope: Json) -> str:
    """Return the model in words, such as `notice 10 min, 2 behind`.

    It is empty if there are no notices and all instances have the latest model.
    """
    model = scope.get("model") or {}
    parts = [
        f"{word} {notice_text(model[key])}"
        for word, key in (("notice", "terminateNotice"), ("reimage", "reimageNotice"))
        if model.get(key)
    ]
    behind = behind_in(scope)
    return ", ".join([*parts, *([f"{len(behind)} behind"] if behind else [])])


def behind_in(*scopes: Json) -> list[str]:
    return [
        each["name"]
        for scope in scopes
        for each in scope["instances"]
        if not each["latestModelApplied"]
    ]


def notice_text(text: str | None) -> str:
    return "" if text is None else human_duration(parse_duration_ms(text))


def _yes_no(is_so: bool) -> Cell:
    return Cell("yes", "green") if is_so else Cell("no", "dim")
