"""Calls the routes of the operator API in-process, for pages, under the same roles as over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import read_body, read_query
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Call, Document, Route

JSON = "application/json"


class Api:
    def __init__(self, control: Control, routes: Sequence[Route]) -> None:
        self._control = control
        self._routes = {(each.method, each.path): each for each in routes}

    def may(self, caller: Caller, method: str, path: str) -> bool:
        return caller.role >= self._routes[method, path].role

    def find(self, method: str, segments: Sequence[str]) -> tuple[str, dict[str, str]]:
        """Return the path of the route that matches `segments`, and the path's parameters.

        For `events` and an id, the path is `/events/{id}`. Raises KeyError if no route matches.
        """
        for known, path in self._routes:
            parts = path.strip("/").split("/")
            if known != method or len(parts) != len(segments):
                continue
            pairs = list(zip(parts, segments, strict=True))
            if all(part[0] == "{" or part == segment for part, segment in pairs):
                return path, {_name(part): segment for part, segment in pairs if part[0] == "{"}
        raise KeyError((method, *segments))

    async def ask(
        self,
        caller: Caller,
        method: str,
        path: str,
        *,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, str | int | bool | Sequence[str] | None] | None = None,
        body: Mapping[str, Any] | None = None,
        why: str = "",
    ) -> Any:
        """Call a route and return its answer. `names` has the parameters of a path `/events/{id}`.

        Raises Problem, Refused or StoreDown.
        """
        route = self._routes[method, path]
        if caller.role < route.role:
            raise Problem(
                403,
                "role-too-low",
                f"this needs the role {route.role.word} and {caller.name} has "
                f"{caller.role.word}; ask an admin for another token",
            )
        raw = b"" if body is None else msgspec.json.encode(body)
        said: Any = (
            Document(raw, is_toml=False)
            if route.takes_toml
            else read_body(route.body, raw, JSON, optional=route.is_body_optional)
        )
        call = Call(
            caller=caller,
            path=names or {},
            query=read_query(route.query, _pairs(query or {})),
            body=said,
            why=why,
            seed=None,
        )
        return await route.handle(self._control, call)


def _name(part: str) -> str:
    """Return the name of a parameter in a path: `scope` for `{scope:path}`."""
    return part.strip("{}").partition(":")[0]


def _pairs(
    query: Mapping[str, str | int | bool | Sequence[str] | None],
) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None:
            continue
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, str | int):
            pairs.append((name, str(value)))
        else:
            pairs += [(name, each) for each in value]
    return pairs
