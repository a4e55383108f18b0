"""Checks that nodes show real documents, never an older one, and map addresses right."""

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, ScopeId
from fairwarning.engine.scope_view import View
from fairwarning.simulation.clients import NOT_MODIFIED, OK, Answered, Client
from fairwarning.simulation.clock import current
from fairwarning.simulation.nodes import Node
from fairwarning.simulation.observed_state import ObservedWorld
from fairwarning.simulation.records import demand, parts_of
from fairwarning.simulation.world import World

_SAME = "6 same number, same document"
_HELD = "held polls"


class ViewChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._shown: dict[tuple[str, ScopeId, tuple[Instant, int]], bytes] = {}
        """The document that each node and client has shown or got for each incarnation."""
        self._first: dict[tuple[ScopeId, tuple[Instant, int]], bytes] = {}
        """The document that was the first to be shown for each incarnation."""
        self._looked_at: dict[tuple[str, ScopeId], int] = {}

    def check(self, seen: ObservedWorld) -> None:
        for node in self._world.nodes:
            if node.is_alive and node.service is not None:
                for scope_id in self._world.scope_ids:
                    self._check_view(node, scope_id)
        for client in self._world.clients:
            for answered in client.answers:
                self._check_answer(seen, answered)
            client.answers.clear()
            self._check_held(client)

    async def check_at_end(self) -> None:
        """Checks that every node shows what is stored, and maps each address to its instance."""
        for node in self._world.nodes:
            if node.is_alive and node.service is not None:
                for scope_id in self._world.scope_ids:
                    await self._compare(node, scope_id)
                await self._check_notes(node)

    def _check_view(self, node: Node, scope_id: ScopeId) -> None:
        view = _view(node, scope_id)
        key = (node.name, scope_id)
        if view is None or self._looked_at.get(key) == view.revision:
            return
        before = self._looked_at.get(key, 0)
        self._looked_at[key] = view.revision
        goes_on = view.revision > before or self._world.past > 0
        demand(_SAME, goes_on, lambda: f"{node.name} goes back to {view.revision} of {scope_id}")
        if view.activated_ms is None:
            return
        self._check_document(scope_id, _tag(view), view.document(NEWEST), node.name)

    def _check_document(self, scope_id: ScopeId, tag: str, body: bytes, who: str) -> None:
        parts = parts_of(tag)
        own = self._shown.setdefault((who, scope_id, parts), body)
        first = self._first.setdefault((scope_id, parts), body)
        # A node that does not know a document that the store has lost may use its number again.
        # So two nodes may use one number, but only until both know that the store was set back.
        is_same = own == body and (first == body or self._world.past > 0)
        demand(_SAME, is_same, lambda: f"{who}: {scope_id} {tag} is {first!r} and {body!r}")
        real = self._world.documents.were_there(scope_id, *parts_of(tag))
        demand(_SAME, body in real, lambda: f"{who}: {scope_id} {tag} is {body!r}, never {real}")

    def _check_answer(self, seen: ObservedWorld, answered: Answered) -> None:
        question, client = answered.question, answered.client
        if answered.status not in (OK, NOT_MODIFIED):
            self._world.happened[f"answer {answered.status}"] += 1
            return
        scope_id = client.scope_id
        self._world.happened[f"poll {answered.status}"] += not question.approves
        if client.address is not None:
            # The address may belong to another instance by now, in another scope.
            return
        if question.approves:
            if self._world.past == 0:
                self._check_approval(seen, scope_id, question.approves)
            return
        if answered.status == OK and question.version == NEWEST.name:
            self._check_document(scope_id, answered.tag, answered.body, client.name)
        if question.clock_steps == self._world.clock_steps and question.past == self._world.past:
            known = question.node.last_polls.get(scope_id, question.asked_ms)
            question.node.last_polls[scope_id] = max(known, question.asked_ms)
        if question.tag and answered.status == OK:
            got, had = (answered.tag, answered.body), (question.tag, question.document)
            is_older = self._world.documents.is_older(scope_id, got, had)
            demand(_SAME, not is_older, lambda: f"{client.name} went back: {answered}")

    def _check_approval(
        self, seen: ObservedWorld, scope_id: ScopeId, ids: tuple[EventId, ...]
    ) -> None:
        for id in ids:
            event = seen.scopes[scope_id].events.get(id)
            done = event is not None and (bool(event.approvals) or not event.is_waiting)
            demand("5 nothing acknowledged is lost", done, lambda: f"{id} was approved")  # noqa: B023

    def _check_held(self, client: Client) -> None:
        """Checks that a poll is not held after a change of its document or after its time is up."""
        held = client.held()
        if held is None or not held.question.node.is_alive:
            return
        shown = _tag(held.view)
        is_changed = held.view.activated_ms is not None and shown != held.question.tag
        demand(_HELD, not is_changed, lambda: f"{client.name} was not woken by {shown}")
        late_s = current().time() - held.until_s
        demand(_HELD, late_s < 0, lambda: f"{client.name} waits {late_s} s too long")

    async def _compare(self, node: Node, scope_id: ScopeId) -> None:
        stored = await self._world.store.read(scope_id)
        view = _view(node, scope_id)
        shown = None if view is None else (view.activated_ms, view.incarnation)
        doubled = self._doubled_number(scope_id, stored.activated_ms)
        demand(_SAME, doubled is None, lambda: f"{scope_id} did not begin anew after {doubled}")
        same = shown == (stored.activated_ms, stored.incarnation)
        demand(_SAME, same, lambda: f"{node.name} shows {shown}, stored is {stored.incarnation}")
        assert node.service is not None
        for instance in stored.roster.live:
            for address in instance.addresses:
                found = node.service.views.by_address(address)
                owner = None if found is None else (found.view.scope_id, found.name)
                is_right = owner == (scope_id, instance.name)
                demand("10 isolation", is_right, lambda: f"{node.name}: {address} is {owner}")  # noqa: B023

    def _doubled_number(self, scope_id: ScopeId, activated_ms: Instant | None) -> int | None:
        """Returns an incarnation for which live nodes have shown two documents, or None."""
        alive = {each.name for each in self._world.nodes if each.is_alive}
        bodies: dict[int, bytes] = {}
        for (who, scope, (activated, number)), body in self._shown.items():
            if who not in alive or (scope, activated) != (scope_id, activated_ms):
                continue
            if bodies.setdefault(number, body) != body:
                return number
        return None

    async def _check_notes(self, node: Node) -> None:
        """Checks that the store knows when instances last polled this node."""
        for scope_id, asked in node.last_polls.items():
            scope = await self._world.store.read(scope_id)
            since = scope.activated_ms or asked
            noted = since >= asked or (scope.last_seen_ms or 0) >= asked
            demand(_SAME, noted, lambda: f"{node.name} never noted who asked for {scope.id}")  # noqa: B023


def _view(node: Node, scope_id: ScopeId) -> View | None:
    assert node.service is not None
    return node.service.views._views.get(scope_id)


def _tag(view: View) -> str:
    return view.tag.strip('"')
