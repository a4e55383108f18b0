"""This module keeps what instances may ask about themselves, packed into a few bytes for each.

`/metadata/instance` must be answered while the store is away, but a whole roster takes ten times
the memory of a packed one. A roster is unpacked when one of its instances asks, which is seldom.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from fairwarning.core.model import (
    EvictionPolicy,
    Instance,
    InstanceName,
    Priority,
    Roster,
    Scope,
    ScopeId,
    ScopeKind,
)

RECENT_MAX = 256  # As many as the stores keep decoded. Most changes concern few scopes.


class _Instance(Struct, frozen=True, array_like=True):
    name: InstanceName
    update_domain: int
    fault_domain: int
    addresses: tuple[str, ...]
    tags: Mapping[str, str]
    priority: Priority
    eviction: EvictionPolicy


class _Roster(Struct, frozen=True, array_like=True):
    kind: ScopeKind
    subscription: str
    resource_group: str
    resource: str
    location: str
    is_numbered: bool
    computer_name_prefix: str
    instances: list[_Instance]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Roster).decode


class PackedRosters:
    """The rosters of all scopes. Only live instances and what they may ask about are kept."""

    def __init__(self) -> None:
        self._packed: dict[ScopeId, bytes] = {}
        self._recent: dict[ScopeId, Roster] = {}
        """Rosters that were packed lately. Most changes of a scope don't change its roster, so
        these are not packed again.
        """

    def put(self, scope_id: ScopeId, roster: Roster) -> None:
        recent = self._recent.get(scope_id)
        if recent is roster or recent == roster:
            return
        self._packed[scope_id] = _pack(roster)
        self._recent[scope_id] = roster
        if len(self._recent) > RECENT_MAX:
            del self._recent[next(iter(self._recent))]

    def remove(self, scope_id: ScopeId) -> None:
        self._packed.pop(scope_id, None)
        self._recent.pop(scope_id, None)

    def find(self, scope_id: ScopeId, name: InstanceName) -> tuple[Scope, Instance] | None:
        """Return the instance and its scope, both with only the fields that are kept. It is None if
        the scope has no such live instance.
        """
        if scope_id not in self._packed:
            return None
        packed = _decode(self._packed[scope_id])
        for each in packed.instances:
            if each.name == name:
                instance = _instance(each)
                return Scope(id=scope_id, roster=_roster(packed, instance)), instance
        return None


def _pack(roster: Roster) -> bytes:
    instances = [
        (i.name, i.update_domain, i.fault_domain, i.addresses, i.tags, i.priority, i.eviction)
        for i in roster.live
    ]
    return _encode(
        (
            roster.kind, roster.subscription, roster.resource_group, roster.resource,
            roster.location, roster.is_numbered, roster.computer_name_prefix, instances,
        )
    )  # fmt: skip


def _instance(packed: _Instance) -> Instance:
    return Instance(
        name=packed.name,
        update_domain=packed.update_domain,
        fault_domain=packed.fault_domain,
        addresses=packed.addresses,
        tags=packed.tags,
        priority=packed.priority,
        eviction=packed.eviction,
    )


def _roster(packed: _Roster, instance: Instance) -> Roster:
    return Roster(
        kind=packed.kind,
        subscription=packed.subscription,
        resource_group=packed.resource_group,
        resource=packed.resource,
        location=packed.location,
        is_numbered=packed.is_numbered,
        computer_name_prefix=packed.computer_name_prefix,
        instances={instance.name: instance},
    )
