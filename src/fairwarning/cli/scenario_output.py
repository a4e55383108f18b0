"""A rehearsal as it is told: lines for people, or one JSON object a line."""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairwarning.cli.output import draw, echo_json, make_console
from fairwarning.cli.table_model import Cell, Lines
from fairwarning.cli.tables.history import KIND_STYLES
from fairwarning.cli.times import to_wire
from fairwarning.common.escape import one_line
from fairwarning.scenarios.model import Scenario
from fairwarning.scenarios.play import Told

if TYPE_CHECKING:
    from rich.console import Console

VMS_SHOWN_MAX = 12
_MARKS = {
    "met": ("as expected: ", "green"),
    "unmet": ("", "bold red"),
    "note": ("", "yellow"),
}


class Teller:
    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def open(self, scenario: Scenario) -> None:
        if self._as_json:
            echo_json({"kind": "title", "text": scenario.title, "story": scenario.story.strip()})
            return
        self._say(Cell(scenario.title, "bold"))
        for line in scenario.story.strip().splitlines():
            self._say(Cell(f"  {one_line(line)}", "dim"))

    def ready(self, *, metadata: str, control: str, vms: dict[str, str], waits: bool) -> None:
        """The private server is there."""
        if self._as_json:
            echo_json({"kind": "ready", "metadata": metadata, "control": control, "vms": vms})
            return
        self._say(Cell(f"A server of this story's own is at {metadata}, control {control}."))
        self._say(Cell("A handler finds it instead of http://169.254.169.254 at"))
        for url in [*vms.values()][:VMS_SHOWN_MAX]:
            self._say(Cell(f"  {url}"))
        if waits:
            self._say(Cell("Waiting for somebody to poll (--no-wait to go on at once) …", "dim"))

    def tell(self, told: Told) -> None:
        if self._as_json:
            echo_json(
                {
                    "kind": told.kind,
                    "at": to_wire(told.at),
                    "since": round(told.since.total_seconds(), 3),
                    "text": told.text,
                    **({"entry": told.data} if told.kind == "report" else told.data),
                }
            )
            return
        self._say(Cell(f"{_offset(told.since)}  ", "dim"), *_cells(told))

    def close(self, *, unmet: int, pending: list[dict[str, Any]]) -> None:
        if self._as_json:
            ids = [each["id"] for each in pending]
            echo_json({"kind": "end", "unmet": unmet, "pending": ids})
            return
        for event in pending:
            self._say(Cell(f"still pending: {pending_line(event)}", "yellow"))

    @cached_property
    def _console(self) -> "Console":
        return make_console()

    def _say(self, *cells: Cell) -> None:
        draw(self._console, Lines(lines=(cells,)))


def pending_line(event: dict[str, Any]) -> str:
    who = ", ".join(event["resources"])
    return f"{event['type']} of {who}, {event['phase']} ({event['id']})"


def _cells(told: Told) -> tuple[Cell, ...]:
    text = one_line(told.text)
    if told.kind == "step":
        deed = told.data.get("deed", "")
        more = f"  ({deed})" if deed and deed != told.text else ""
        return (Cell(text, "bold"), Cell(more, "dim"))
    if told.kind == "report":
        return (Cell(f"  {text}", KIND_STYLES.get(told.data["kind"], "")),)
    mark, style = _MARKS[told.kind]
    return (Cell(f"  {mark}{text}", style),)


def _offset(since: timedelta) -> str:
    """`+0:04:00`."""
    minutes, seconds = divmod(max(0, int(since.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02}:{seconds:02}"
