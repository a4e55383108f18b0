"""Prints a scenario while it is played, as text or as one JSON object per line."""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairwarning.cli.output import draw, echo_json, make_console
from fairwarning.cli.table_model import Cell, Lines
from fairwarning.cli.tables.history import KIND_STYLES
from fairwarning.cli.times import to_wire
from fairwarning.common.escape import one_line
from fairwarning.scenarios.model import Scenario
from fairwarning.scenarios.play import ReportLine

if TYPE_CHECKING:
    from rich.console import Console

VMS_SHOWN_MAX = 12  # Half a screen of 24 lines.
_MARKS = {
    "met": ("as expected: ", "green"),
    "unmet": ("", "bold red"),
    "note": ("", "yellow"),
}


class ScenarioPrinter:
    """Prints the title, then each line of the report, then the events that are still pending."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def open(self, scenario: Scenario) -> None:
        if self._as_json:
            echo_json(
                {
                    "kind": "title",
                    "text": scenario.title,
                    "description": scenario.description.strip(),
                }
            )
            return
        self._say(Cell(scenario.title, "bold"))
        for line in scenario.description.strip().splitlines():
            self._say(Cell(f"  {one_line(line)}", "dim"))

    def ready(self, *, metadata: str, control: str, vms: dict[str, str], waits: bool) -> None:
        """Print the addresses of the server that `--serve` started, and of its VMs."""
        if self._as_json:
            echo_json({"kind": "ready", "metadata": metadata, "control": control, "vms": vms})
            return
        self._say(Cell(f"A server for this scenario is at {metadata}, control {control}."))
        self._say(Cell("A handler finds it instead of http://169.254.169.254 at"))
        for url in [*vms.values()][:VMS_SHOWN_MAX]:
            self._say(Cell(f"  {url}"))
        if waits:
            self._say(Cell("Waiting for somebody to poll (--no-wait to go on at once) …", "dim"))

    def line(self, line: ReportLine) -> None:
        if self._as_json:
            echo_json(
                {
                    "kind": line.kind,
                    "at": to_wire(line.at),
                    "since": round(line.since.total_seconds(), 3),
                    "text": line.text,
                    **({"entry": line.data} if line.kind == "report" else line.data),
                }
            )
            return
        self._say(Cell(f"{_offset(line.since)}  ", "dim"), *_cells(line))

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


def _cells(line: ReportLine) -> tuple[Cell, ...]:
    text = one_line(line.text)
    if line.kind == "step":
        action = line.data.get("action", "")
        more = f"  ({action})" if action and action != line.text else ""
        return (Cell(text, "bold"), Cell(more, "dim"))
    if line.kind == "report":
        return (Cell(f"  {text}", KIND_STYLES.get(line.data["kind"], "")),)
    mark, style = _MARKS[line.kind]
    return (Cell(f"  {mark}{text}", style),)


def _offset(since: timedelta) -> str:
    """Return the time since the beginning, such as `+0:04:00`."""
    minutes, seconds = divmod(max(0, int(since.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02}:{seconds:02}"
