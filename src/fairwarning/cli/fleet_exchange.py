"""Sends a fleet file of any size, shows the progress, and joins the lines of the answer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairwarning.cli.progress import Progress
from fairwarning.common.command_errors import Disconnected, Problem

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

Json = dict[str, Any]
PART_BYTES = 256 * 1024  # Small enough to show how far the sending is.


def send_fleet(
    api: "Api", method: str, *path: str, content: bytes, media_type: str, **params: Any
) -> Json:
    """Return the whole plan. Raises `Problem`, which says how much is done if only a part is."""
    with Progress() as progress:
        done = scopes = 0
        plan: Json = {"changes": [], "kept": [], "confirm": None, "warnings": [], "terminates": []}
        try:
            with api.send_large(
                method, *path, content=_parts(content, progress), size=len(content),
                media_type=media_type, **params,
            ) as lines:  # fmt: skip
                for line in lines:
                    if "step" not in line:
                        return line
                    done, scopes = line.get("done", done), line.get("scopes", scopes)
                    _add(plan, line)
                    if line["step"] == "done":
                        return plan
                    progress.show(f"{done:,} of {scopes:,} scopes")
        except KeyboardInterrupt:
            raise _broken_off("stopped", done, scopes) from None
        except Disconnected as error:
            raise _broken_off(f"the connection broke ({error})", done, scopes) from None
        raise _broken_off("the answer of the server broke off", done, scopes)


def _parts(content: bytes, progress: Progress) -> Iterator[bytes]:
    for first in range(0, len(content), PART_BYTES):
        yield content[first : first + PART_BYTES]
        progress.show(f"sent {min(first + PART_BYTES, len(content)):,} of {len(content):,} bytes")
    progress.show("the server plans")


def _add(plan: Json, line: Json) -> None:
    for key in plan.keys() & line.keys():
        if isinstance(plan[key], list):
            plan[key] += line[key]
        else:
            plan[key] = line[key]


def _broken_off(what: str, done: int, scopes: int) -> Problem:
    if not done:
        return Problem(
            f"{what} before the server told of a change; see `fairwarning history`, and run this "
            "again"
        )
    return Problem(
        f"{what} after {done:,} of {scopes:,} scopes; those are as the file says, so run this "
        "again to finish"
    )
