"""What a player hears of the server's history: all of it, once, and in order."""

from typing import Any

import pytest

from fairwarning.scenarios.model import Json
from fairwarning.scenarios.play import PAGE, HistoryReader


class History:
    """A server that answers for its history alone."""

    def __init__(self) -> None:
        self.entries: list[Json] = []

    def write(self, count: int = 1, scope: str = "s", kind: str = "Scheduled") -> None:
        for _ in range(count):
            position = str(len(self.entries))
            self.entries.append({"position": position, "scope": scope, "kind": kind})

    def get(self, *path: str, **params: Any) -> Json:
        assert path == ("history",)
        newest = self.entries[::-1]
        positions = [each["position"] for each in newest]
        start = 0 if params.get("after") is None else positions.index(params["after"]) + 1
        page = newest[start : start + params["limit"]]
        more = len(newest) > start + params["limit"]
        return {"entries": page, "next": page[-1]["position"] if more else None}

    def post(self, *path: str, body: Json | None = None) -> Json:
        raise NotImplementedError

    def delete(self, *path: str) -> Json:
        raise NotImplementedError


def positions(found: list[Json]) -> list[int]:
    return [int(each["position"]) for each in found]


@pytest.mark.parametrize("before", [0, 1, PAGE + 1])
@pytest.mark.parametrize("count", [1, PAGE, PAGE + 1, 2 * PAGE + 3])
def test_each_entry_is_told_once_and_oldest_first(before: int, count: int) -> None:
    history = History()
    history.write(before)
    news = HistoryReader(history, {"s"})
    history.write(count)
    assert positions(news.read()) == list(range(before, before + count))
    assert news.read() == []
    history.write(2)
    assert positions(news.read()) == [before + count, before + count + 1]


def test_other_scopes_and_the_housekeeping_of_nodes_are_not_told() -> None:
    history = History()
    news = HistoryReader(history, {"s"})
    for scope in ("s", "other", ""):
        history.write(scope=scope)
    for kind in ("HandedOver", "LeaseRenewed"):
        history.write(kind=kind)
    assert positions(news.read()) == [0, 2]
    assert news.read() == []
