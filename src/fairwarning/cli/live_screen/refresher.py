"""Keeps the state of the live screen up to date, on its own thread.

The stream only says which scopes changed; their state is then requested again. So a lost message
can delay the screen but cannot leave it wrong.
"""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairwarning.cli.common_options import ServerClock
from fairwarning.cli.event_stream import Back, Entry, Feed, Happening, Lost
from fairwarning.cli.live_screen.screen import (
    ENTRIES_MAX,
    Json,
    ScreenState,
    with_entries,
    with_scope,
)
from fairwarning.cli.lookup import UNFINISHED
from fairwarning.cli.times import from_wire
from fairwarning.common.command_errors import Problem

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

_SINGLE_MAX = 10
"""With more changed scopes than this, the whole fleet is requested."""
_AGAIN_S = 2.0  # A failed request is repeated soon, and does not load the server.


class Refresher:
    """Updates `seen`, which may be read at any time. `ended` is the error that stopped this."""

    def __init__(self, api: "Api", clock: ServerClock) -> None:
        self._api = api
        self._clock = clock
        history = api.get("history", limit=ENTRIES_MAX)["entries"]
        # Open the stream before the state is read, so that no change in between is lost.
        self._feed = Feed(api.stream, history[0]["position"] if history else None)
        self.seen = with_entries(self._loaded(ScreenState()), list(reversed(history)))
        self.ended: Exception | None = None
        self._is_stale = False
        threading.Thread(target=self._run, name="refresher", daemon=True).start()

    def _run(self) -> None:
        try:
            while True:
                self._take(self._batch())
        except Exception as error:
            self.ended = error

    def _batch(self) -> list[Happening]:
        """Wait for an item, and return all that are waiting, so that a burst costs one refresh."""
        first = self._feed.next(_AGAIN_S if self._is_stale else None)
        batch = [] if first is None else [first]
        while batch and (more := self._feed.next(0)) is not None:
            batch.append(more)
        return batch

    def _take(self, batch: Sequence[Happening]) -> None:
        entries = [each.body for each in batch if isinstance(each, Entry)]
        for entry in entries:
            self._clock.saw(from_wire(entry["at"]))
        seen = with_entries(self.seen, entries)
        for each in batch:
            if isinstance(each, Lost):
                seen = replace(seen, lost=each.reason)
            elif isinstance(each, Back):
                self._is_stale, seen = True, replace(seen, lost="")
        self.seen = seen
        if not seen.lost:
            self._refresh({str(entry["scope"]) for entry in entries})

    def _refresh(self, changed: set[str]) -> None:
        try:
            if self._is_stale or len(changed) > _SINGLE_MAX:
                self.seen = self._loaded(self.seen)
            elif changed:
                self.seen = self._updated(self.seen, changed)
            self._is_stale = False
        except Problem as problem:
            if 400 <= problem.status < 500:
                raise
            self._is_stale = True
            self.seen = replace(self.seen, lost=problem.message)

    def _loaded(self, seen: ScreenState) -> ScreenState:
        scopes: list[Json] = self._api.pages("fleet", key="scopes")["scopes"]
        return replace(seen, scopes=tuple(scopes), events=self._events(), lost="")

    def _updated(self, seen: ScreenState, changed: set[str]) -> ScreenState:
        for id in changed:
            seen = with_scope(seen, id, self._scope(id))
        return replace(seen, events=self._events())

    def _events(self) -> tuple[Json, ...]:
        return tuple(self._api.pages("events", key="events", phase=UNFINISHED)["events"])

    def _scope(self, id: str) -> Json | None:
        try:
            return self._api.get("scopes", id) if id else None
        except Problem as problem:
            if problem.status != 404:
                raise
            return None
