"""`fairwarning record` records on a VM what its endpoint says, without a server."""

import json
import os
import signal
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import click

from fairwarning.cli.times import NotATime, parse_duration_ms
from fairwarning.common.command_errors import Problem


@click.command(
    epilog="""\b
Examples:
  fairwarning record --output recorded.jsonl
  fairwarning record --endpoint http://127.0.0.1:8169/vm/web-0 --for 1h > recorded.jsonl
  fairwarning scenario run recorded.jsonl --serve
"""
)
@click.option(
    "--endpoint",
    metavar="URL",
    help="URL of the metadata endpoint (default: FAIRWARNING_METADATA_URL, or Azure's endpoint).",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File to append the recording to (default: standard output).",
)
@click.option("--for", "for_", metavar="D", help="How long to record (default: until Ctrl-C).")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the final summary as JSON. Only with --output."
)
def record(endpoint: str | None, output: Path | None, for_: str | None, as_json: bool) -> None:
    """Record what the metadata endpoint of this VM sends, one JSON object per line.

    The command only reads and approves nothing. It writes each document that differs from the last
    one to the disk at once, so that nothing is lost when the machine goes down. `fairwarning
    scenario run FILE` plays a recording back.
    """
    from fairwarning.client.discovery import endpoint_url  # noqa: PLC0415  help comes at once
    from fairwarning.scenarios.recorder import Recorder  # noqa: PLC0415

    for_s = _seconds(for_)
    url = endpoint or endpoint_url()
    try:
        with _opened(output) as stream:
            try:
                recorder = Recorder(url, _writer(stream))
            except ValueError as problem:
                raise click.UsageError(f"--endpoint: {problem}") from None
            click.echo(f"Recording from {url}; Ctrl-C ends it.", err=True)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with suppress(KeyboardInterrupt):
                recorder.run(for_s)
    except OSError as problem:  # Closing the file writes too.
        raise Problem(f"the recording cannot be written: {problem.strerror}; make room, or choose "
                      "another --output") from None  # fmt: skip
    counts = {"documents": recorder.documents, "outages": recorder.outages}
    if as_json and output is not None:
        click.echo(json.dumps({**counts, "output": str(output)}))
    else:
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        click.echo(f"Recorded: {told}.", err=True)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration_ms(text) / 1000
    except NotATime as error:
        raise click.UsageError(f"--for: {error}") from None


def _opened(path: Path | None) -> IO[str]:
    if path is None:
        return click.open_file("-", "w")
    try:
        _refuse_other(path)
        return path.open("a", encoding="utf-8")
    except OSError as problem:
        raise Problem(f"{path} cannot be written: {problem.strerror}") from None


def _refuse_other(path: Path) -> None:
    """Raise `Problem` if the file is no recording. From a recording, remove a last half line."""
    if not path.exists() or path.stat().st_size == 0:
        return
    content = path.read_bytes()
    if not content.startswith(b'{"kind":"begin"'):
        raise Problem(f"{path} is there and is no recording; choose another name")
    # The VM may have gone down while it wrote the last line.
    os.truncate(path, content.rfind(b"\n") + 1)


def _writer(stream: IO[str]) -> Any:
    is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)

    def write(line: dict[str, Any]) -> None:
        stream.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        stream.flush()
        if is_file:
            os.fsync(stream.fileno())

    return write
