"""Makes the handlers of a kind of resource that is only stored and returned as it was written."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec.structs import replace

from fairwarning.azure_api.body_values import location_of, resource_members, tags_of
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.etags import record_tag, refuse_unmatched_record, retried, tag_header
from fairwarning.azure_api.lists import list_reply
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord, new_record

Check = Callable[[Arm, ArmCall, Json], Awaitable[None]]
"""Raises ArmError if the new body of a resource is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKind:
    type: str
    check: Check
    render: Callable[[ResourceRecord], Json]
    """Returns the properties to show."""

    def routes(self) -> Routes:
        namespace, _, name = self.type.lower().partition("/")
        return {
            ("GET", namespace, name): self.list_all,
            ("PUT", self.type.lower(), ""): retried(self.create_or_replace),
            ("PATCH", self.type.lower(), ""): retried(self.update),
            ("GET", self.type.lower(), ""): self.get,
            ("DELETE", self.type.lower(), ""): retried(self.delete),
        }

    async def find(self, arm: Arm, path: ResourcePath) -> ResourceRecord:
        """Returns the resource. Raises ArmError if there is none."""
        record = await arm.resources.find(path.id)
        if record is None:
            raise not_found(self.type, path.name, path.group)
        return record

    async def create_or_replace(self, arm: Arm, call: ArmCall) -> Reply:
        if call.body is None:
            raise ArmError(
                400, "InvalidRequestContent", "The request content was empty; send a JSON object."
            )
        body = merge({}, resource_members(call.body))
        body["location"] = location_of(body)
        before = await arm.resources.find(call.path.id)
        refuse_unmatched_record(call, before)
        record = await self._put(arm, call, before, body)
        return self._reply(201 if before is None else 200, record)

    async def update(self, arm: Arm, call: ArmCall) -> Reply:
        before = await self.find(arm, call.path)
        refuse_unmatched_record(call, before)
        body = merge(before.body, resource_members(call.body))
        return self._reply(200, await self._put(arm, call, before, body))

    async def get(self, arm: Arm, call: ArmCall) -> Reply:
        return self._reply(200, await self.find(arm, call.path))

    def _reply(self, status: int, record: ResourceRecord) -> Reply:
        return Reply(status, self.json(record), tag_header(record_tag(record)))

    async def delete(self, arm: Arm, call: ArmCall) -> Reply:
        record = await arm.resources.find(call.path.id)
        refuse_unmatched_record(call, record)
        if record is None:
            return Reply(204)
        await arm.resources.delete(record, by=call.by)
        return Reply(200)

    async def list_all(self, arm: Arm, call: ArmCall) -> Reply:
        records = arm.resources.list_below(call.path.place)
        found = [self.json(each) async for each in records if each.type == self.type]
        return await list_reply(call, found)

    async def _put(
        self, arm: Arm, call: ArmCall, before: ResourceRecord | None, body: Json
    ) -> ResourceRecord:
        tags_of(body)
        await self.check(arm, call, body)
        now, path = arm.control.clock.now(), call.path
        record = before or new_record(now, id=path.id, type=self.type, name=path.name, body={})
        return await arm.resources.put(replace(record, body=body), by=call.by)

    def json(self, record: ResourceRecord) -> Json:
        head = {"id": record.id, "name": record.name, "type": self.type, "tags": {}}
        return {**head, **record.body, "properties": self.render(record)}
