"""This module finds the instance that has an address, by the newest rosters that this node knows.

Theory of operation. In the store an address has one owner. But changes of two scopes may arrive
here in any order, so for a while two scopes may claim the same address: the new owner, and one that
has given the address up without this node knowing it yet. While two scopes claim an address, it has
no owner here, because an answer to the wrong instance would break isolation. The caller then reads
both scopes again. When one gives the address up, the other is the owner.
"""

from collections.abc import Callable, Collection, Mapping

from fairwarning.core.model import InstanceName, ScopeId
from fairwarning.engine.scope_view import Member

_NONE: Mapping[str, InstanceName] = {}


class AddressIndex:
    def __init__(self, find_member: Callable[[ScopeId, InstanceName], Member | None]) -> None:
        self._find_member = find_member
        self._owners: dict[str, Member] = {}
        self.find: Callable[[str], Member | None] = self._owners.get
        self._claims: dict[ScopeId, Mapping[str, InstanceName]] = {}
        """The addresses in the newest roster of each scope, if it has addresses."""
        self._contested: dict[str, set[ScopeId]] = {}
        """For each address that several scopes claim, the ids of these scopes."""

    def claims_of(self, scope_id: ScopeId) -> Mapping[str, InstanceName]:
        return self._claims.get(scope_id, _NONE)

    def claim(self, scope_id: ScopeId, addresses: Mapping[str, InstanceName]) -> set[ScopeId]:
        """Replace the addresses of the scope. Returns the other scopes that claim one of them."""
        before = self.claims_of(scope_id)
        if addresses:
            self._claims[scope_id] = addresses
        else:
            self._claims.pop(scope_id, None)
        if before:
            for address in before.keys() - addresses.keys():
                self._release(scope_id, address)
        rivals: set[ScopeId] = set()
        for address in addresses:
            rivals.update(self._take(scope_id, address))
        rivals.discard(scope_id)
        return rivals

    def _take(self, scope_id: ScopeId, address: str) -> Collection[ScopeId]:
        claimants = self._contested.get(address)
        if claimants is not None:
            claimants.add(scope_id)
            return claimants
        owner = self._owners.get(address)
        if owner is not None and owner.view.scope_id != scope_id:
            del self._owners[address]
            self._contested[address] = {owner.view.scope_id, scope_id}
            return self._contested[address]
        self._give(address, scope_id)
        return ()

    def _release(self, scope_id: ScopeId, address: str) -> None:
        claimants = self._contested.get(address)
        if claimants is None:
            del self._owners[address]
            return
        claimants.remove(scope_id)
        if len(claimants) == 1:
            del self._contested[address]
            self._give(address, claimants.pop())

    def _give(self, address: str, scope_id: ScopeId) -> None:
        owner = self._find_member(scope_id, self._claims[scope_id][address])
        assert owner is not None, f"{scope_id} claims {address} for nobody"
        self._owners[address] = owner
