"""Previews a deployment: which resources it would create, modify, delete or leave alone.

Only what the template writes is compared, because a deployment keeps everything else. Texts that
differ only in upper and lower case are the same, and so are `West Europe` and `westeurope`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from fairwarning.azure_api.body_types.conform import with_known_members
from fairwarning.azure_api.deployments.complete_mode import resources_left_out
from fairwarning.azure_api.deployments.execute import evaluate, plan_deployment
from fairwarning.azure_api.deployments.template_runner import TemplateRunner
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.paths import resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS
from fairwarning.azure_api.templates.template_job import ROOT, Resource

_NOT_THERE = 404
_HEAD = frozenset({"id", "name", "type", "apiversion"})


class _Place(NamedTuple):
    """The place of a template: the number of its deployment, and its level of nesting."""

    deployment: int = ROOT
    level: int = 1


class Preview:
    """Makes the preview of one deployment and of its nested deployments."""

    def __init__(self, arm: Arm, call: ArmCall, runner: TemplateRunner) -> None:
        self._arm = arm
        self._call = call
        self._runner = runner
        self._ids: set[str] = set()
        """The ids of all resources of the templates, in lower case."""

    async def changes(self) -> list[Json]:
        """Returns the changes in the form of a what-if result, sorted by id.

        Raises ArmError or Problem if the template is not valid.
        """
        mode, found = await self._of_template(self._call, _Place())
        path = self._call.path
        for row in await resources_left_out(self._arm, path.subscription, path.group, self._ids):
            is_deleted = mode == "Complete" and row.is_deletable
            before = await self._read(row.id) if is_deleted else row.json
            kind = "Delete" if is_deleted else "Ignore"
            found.append(_change(row.id, kind, before or row.json))
        return sorted(found, key=lambda each: str(each["resourceId"]).lower())

    async def _of_template(self, call: ArmCall, place: _Place) -> tuple[str, list[Json]]:
        """Returns the mode of a deployment, and the changes of the resources of its template."""
        plan = await plan_deployment(self._arm, call, self._runner, *place)
        found: list[Json] = []
        for number, each in enumerate(plan.resources):
            self._ids.add(each.id.lower())
            found += await self._of_resource(call, place, number, each)
        return plan.mode, found

    async def _of_resource(
        self, call: ArmCall, place: _Place, number: int, each: Resource
    ) -> list[Json]:
        before = None if each.is_deployment else await self._read(each.id, each.api_version)
        try:
            runner = self._runner
            asked = await evaluate(
                self._arm, call, runner, lambda: runner.body(place.deployment, number)
            )
        except ArmError as error:
            if error.status != _NOT_THERE:
                raise
            # The body refers to a resource that the deployment would create first.
            return [_change(each.id, "Create" if before is None else "Deploy", before)]
        if each.is_deployment:
            inner = replace(call, path=resource_path(each.id))
            return (await self._of_template(inner, _Place(asked.nested, place.level + 1)))[1]
        head = {"apiVersion": each.api_version, "id": each.id, "name": each.name, "type": each.type}
        as_put = replace(call, method="PUT", path=resource_path(each.id), body=asked.value)
        after = head | merge({}, with_known_members(as_put).body or {})
        if before is None:
            return [_change(each.id, "Create", None, after)]
        delta = deltas_of(before, after)
        return [_change(each.id, "Modify" if delta else "NoChange", before, after, delta)]

    async def _read(self, id: str, api_version: str = "") -> Json | None:
        path = resource_path(id)
        version = api_version or API_VERSIONS.get(path.namespace, self._call.api_version)
        query = {"api-version": version}
        call = replace(self._call, method="GET", path=path, query=query, body=None, template=b"")
        try:
            found = msgspec.to_builtins((await self._arm.answer(call)).body)
        except ArmError as error:
            if error.status != _NOT_THERE:
                raise
            return None
        assert isinstance(found, dict)
        return found


def _change(
    id: str,
    kind: str,
    before: Json | None,
    after: Json | None = None,
    delta: list[Json] | None = None,
) -> Json:
    found: Json = {"resourceId": id, "changeType": kind, "before": before, "after": after}
    return found | ({"delta": delta} if delta else {})


def ids_only(changes: list[Json]) -> list[Json]:
    """Returns the changes in the short form. It does not say whether a resource would change."""
    short = {"Modify": "Deploy", "NoChange": "Deploy"}
    return [
        {
            "resourceId": each["resourceId"],
            "changeType": short.get(each["changeType"], each["changeType"]),
        }
        for each in changes
    ]


def deltas_of(before: Json, after: Json) -> list[Json]:
    """Returns the property changes in the form of a what-if result."""
    return [
        delta
        for name, value in after.items()
        if name.lower() not in _HEAD
        for delta in _changes(name, _member(before, name), value)
    ]


def _changes(path: str, before: Any, after: Any) -> Iterator[Json]:
    if after is None:
        return
    if isinstance(after, dict) and isinstance(before, dict):
        for name, value in after.items():
            yield from _changes(f"{path}.{name}", _member(before, name), value)
    elif isinstance(after, list) and isinstance(before, list):
        children = list(_items(before, after))
        if children:
            yield _delta(path, "Array", before, after, children)
    elif before is None:
        if after not in ({}, []):
            yield _delta(path, "Create", None, after)
    elif not _is_same(path, before, after):
        yield _delta(path, "Modify", before, after)


def _items(before: list[Any], after: list[Any]) -> Iterator[Json]:
    for at in range(max(len(before), len(after))):
        if at >= len(after):
            yield _delta(str(at), "Delete", before[at], None)
        elif at >= len(before):
            yield _delta(str(at), "Create", None, after[at])
        else:
            yield from _changes(str(at), before[at], after[at])


def _delta(
    path: str, kind: str, before: Any, after: Any, children: list[Json] | None = None
) -> Json:
    return {
        "path": path,
        "propertyChangeType": kind,
        "before": before,
        "after": after,
        "children": children,
    }


def _member(values: Json, name: str) -> Any:
    if name in values:
        return values[name]
    return next((each for key, each in values.items() if key.lower() == name.lower()), None)


def _is_same(path: str, before: Any, after: Any) -> bool:
    one, other = _text(before), _text(after)
    if path == "location":
        return one.replace(" ", "") == other.replace(" ", "")
    return one == other


def _text(value: Any) -> str:
    return str(value).lower()
