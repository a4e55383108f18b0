"""Previews a deployment: which resources it would create, modify, delete or leave alone."""

from dataclasses import replace
from typing import NamedTuple

import msgspec

from fairwarning.azure_api.body_types.conform import with_known_members
from fairwarning.azure_api.deployments.complete_mode import resources_left_out
from fairwarning.azure_api.deployments.deltas import deltas_of
from fairwarning.azure_api.deployments.execute import evaluate, plan_deployment
from fairwarning.azure_api.deployments.template_runner import TemplateRunner
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.paths import resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS
from fairwarning.azure_api.templates.template_job import ROOT, Resource

_NOT_THERE = 404


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
