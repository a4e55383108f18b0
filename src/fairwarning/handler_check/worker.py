"""The process of one case: its network, its server, its handler.

`python -m fairwarning.handler_check.worker ORDER` prints the result as one line of JSON. It ends
when its standard input does, so that nothing outlives whoever started it.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from fairwarning.handler_check import namespace
from fairwarning.handler_check.case_api import Scene
from fairwarning.handler_check.cases import AUDITION, STORIES, Story
from fairwarning.handler_check.fleet import HOSTNAMES, fleet
from fairwarning.handler_check.handler import CannotStart, Handler, end_of
from fairwarning.handler_check.model import Order, Point, Result, Verdict
from fairwarning.handler_check.observations import Diary, Seen
from fairwarning.testing import Server


def play(order: Order) -> Result:
    story = STORIES.get(order.story, AUDITION)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairwarning-check-") as folder:
        output = Path(folder, "output")
        if order.in_namespace:
            namespace.furnish(HOSTNAMES[story.vm])
        with _server(story, order) as server:
            scene = _play(story, order, server, Path(folder), output)
        return Result(
            story=story.name,
            title=story.title,
            why=story.why,
            happened=tuple(scene.happened),
            points=tuple(scene.points),
            output=end_of(output),
            took_s=round(time.monotonic() - began, 2),
        )


def _server(story: Story, order: Order) -> Server:
    return Server(
        fleet=fleet(story.vm, is_at_endpoint=order.in_namespace),
        start=datetime.now(UTC) + timedelta(hours=story.begins_h),
        newest_version=story.newest_version,
        # Azure has no long-poll, and without one a poll shows that the last answer was read.
        holds_polls=False,
        also=[(namespace.ENDPOINT, namespace.PORT)] if order.in_namespace else (),
    )


def _play(story: Story, order: Order, server: Server, folder: Path, output: Path) -> Scene:
    diary = folder / "log"
    state = folder / "state"
    state.mkdir()
    seen = Seen(server, story.vm, Diary(diary), order.patience_s)
    url = f"http://{namespace.ENDPOINT}" if order.in_namespace else server.vm(story.vm).url
    command = [_filled(each, url, story.vm) for each in order.command]
    environment = {
        "FAIRWARNING_METADATA_URL": url,
        "FAIRWARNING_CHECK_LOG": str(diary),
        "FAIRWARNING_CHECK_STATE": str(state),
        **story.environment,
    }
    start = _starter(seen, lambda: Handler(command, environment, output, server.nudge))
    scene = Scene(server, story.vm, seen, start, approves=order.approves)
    try:
        start()
        if scene.must_start():
            story.play(scene)
    except CannotStart as problem:
        scene.points.append(
            Point(should="start", did=f"it cannot be run: {problem}", verdict=Verdict.FAILED)
        )
    finally:
        if seen.handler is not None:
            seen.handler.stop()
    return scene


def _starter(seen: Seen, make: Callable[[], Handler]) -> Callable[[], None]:
    def start() -> None:
        if seen.handler is not None:
            seen.handler.kill()
        seen.handler = make()

    return start


def _filled(word: str, url: str, vm: str) -> str:
    return word.replace("{url}", url).replace("{vm}", vm)


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _on_terminate(*_: object) -> None:
    # Once only: a second one would interrupt the clearing up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1)


def main() -> None:
    signal.signal(signal.SIGTERM, _on_terminate)
    threading.Thread(target=_end_with_input, daemon=True).start()
    result = play(msgspec.json.decode(sys.argv[1], type=Order))
    sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
