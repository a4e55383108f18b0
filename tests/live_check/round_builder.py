"""A small round that keeps every promise, made by hand, for the checks to look at."""

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from fairwarning.live_check.records import (
    Approval,
    At,
    ClockReading,
    Document,
    DriverCall,
    Entry,
    NodeChange,
    OrderedInstance,
    Poll,
    Records,
    Request,
    Scope,
)

BEGAN_MS = 1_800_000_000_000
WEB, DB, WORKERS = (f"sub/group/{rest}" for rest in ("set/web", "set/db", "scale-set/workers/0"))
DOMAINS = {"web-0": 0, "web-1": 1, "db-0": 0, "workers_0": 0, "workers_1": 1}
OWNERS = {"web-0": WEB, "web-1": WEB, "db-0": DB, "workers_0": WORKERS, "workers_1": WORKERS}
_TYPES = {"restart": "Reboot", "delete": "Terminate"}


def at(second: float) -> At:
    return At(100 + second, BEGAN_MS + second * 1000)


def _ms(second: float) -> int:
    return BEGAN_MS + round(second * 1000)


class RoundBuilder:
    def __init__(self) -> None:
        self.records = Records()
        self._incarnations = {WEB: 1, DB: 1, WORKERS: 1}
        self._shown: dict[str, dict[str, dict[str, Any]]] = {WEB: {}, DB: {}, WORKERS: {}}
        for id, terminate_notice_s, policies in (
            (WEB, None, []),
            (DB, None, ["policy:userInitiatedReboot"]),
            (WORKERS, 300, []),
        ):
            self.records.add(
                Scope(
                    id=id,
                    name=id,
                    kind="scale-set" if id == WORKERS else "availability-set",
                    test=id != DB,
                    instances=[name for name, owner in OWNERS.items() if owner == id],
                    minimum_notice_s={"Freeze": 1, "Reboot": 2, "Redeploy": 2, "Preempt": 1},
                    terminate_notice_s=terminate_notice_s,
                    policies=policies,
                    activated=True,
                    incarnation=1,
                )
            )
        self.records.add(NodeChange(node="node-1.1", change="started", at=at(-2)))
        for second in (0, 30):
            self.records.add(ClockReading(at=at(second), late_s=0))

    # What callers and instances do.

    def ask(self, what: str, id: str, second: float, **body: Any) -> Request:
        """A request that is answered with the event as it is by then."""
        made = next(e for e in self.records.history if e.kind == "Scheduled" and e.event == id)
        event = made.data["event"]
        not_before = datetime.fromtimestamp(event["not_before_ms"] / 1000, UTC)
        request = Request(
            who="caller-1",
            label=f"{what}-{id}",
            what=what,
            node="node-1.1",
            path=f"/api/v1/events/{id}/{what}" if what in ("approve", "cancel") else "/api/v1/x",
            body=body or None,
            key=None,
            sent=at(second),
            answered=at(second + 0.02),
            status=200,
            answer={
                "id": id,
                "scope": made.scope,
                "type": event["type"],
                "resources": event["resources"],
                "notBefore": not_before.isoformat(),
                "timeline": [
                    {"position": e.position, "kind": e.kind, "data": e.data}
                    for e in self.records.history
                    if e.event == id
                ],
            },
        )
        self.records.add(request)
        return request

    def approve(self, name: str, id: str, second: float, status: int = 200) -> None:
        self.records.add(
            Approval(
                instance=name,
                node="node-1.1",
                version="2020-07-01",
                events=[id],
                is_foreign=OWNERS[name] != self._scope_of(id),
                sent=at(second - 0.01),
                answered=at(second + 0.01),
                status=status,
            )
        )

    def poll(
        self, name: str, second: float, *, version: str = "2020-07-01", is_last: bool = False
    ) -> Poll:
        """What the scope shows by now."""
        scope = OWNERS[name]
        number = self._incarnations[scope]
        document = {"DocumentIncarnation": number, "Events": list(self._shown[scope].values())}
        text = json.dumps(document)
        self.records.add(Document(digest=text, text=text))
        poll = Poll(
            instance=name,
            node="node-1.1",
            version=version,
            sent_tag=None,
            wait_s=0,
            sent=at(second),
            answered=at(second + 0.001),
            status=200,
            tag=f'"{number}-abc"',
            document=text,
            is_last=is_last,
        )
        self.records.add(poll)
        return poll

    def unanswered_poll(self, name: str, second: float) -> Poll:
        poll = self.poll(name, second)
        poll.answered = poll.status = poll.tag = poll.document = None
        return poll

    # What the history says.

    def scheduled(
        self,
        id: str,
        names: list[str],
        second: float,
        not_before: float,
        *,
        type: str = "Reboot",
        operation: str | None = None,
        announced: bool = True,
        label: str = "",
    ) -> None:
        event = {
            "id": id,
            "type": _TYPES.get(operation or "", type),
            "source": "User" if operation else "Platform",
            "resources": names,
            "created_ms": _ms(second),
            "not_before_ms": _ms(not_before),
            "operation": operation,
            "announced": announced,
        }
        why = label or f"{operation or 'schedule'}-{id}"
        self._add(id, "Scheduled", second, {"event": event}, scope=OWNERS[names[0]], why=why)
        if announced:
            shown = {"EventId": id, "EventStatus": "Scheduled", "EventType": event["type"]}
            not_before_text = format_datetime(
                datetime.fromtimestamp(_ms(not_before) / 1000, UTC), usegmt=True
            )
            shown |= {"Resources": names, "NotBefore": not_before_text}
            self._change(id, second, shown)

    def approved(self, id: str, by: str, second: float) -> None:
        kind, _, name = by.partition(":")
        self._add(id, "Approved", second, {"by": {"kind": kind, "name": name}}, by=by)

    def started(self, id: str, second: float) -> None:
        self._add(id, "Started", second, {"cause": "due"})
        self.handed_over(id, 1, second)
        shown = self._shown[self._scope_of(id)].get(id)
        if shown is not None:
            self._change(id, second, shown | {"EventStatus": "Started", "NotBefore": ""})

    def seen(self, id: str, name: str, second: float) -> None:
        """Put into the history after what had happened to the event by then."""
        history = self.records.history
        before = [e for e in history if e.event == id and e.at_ms <= _ms(second)]
        place = history.index(before[-1]) + 1
        self._add(id, "Seen", second, {"name": name}, by=f"instance:{name}")
        history.insert(place, history.pop())

    def handed_over(self, id: str, attempt: int, second: float, node: str = "n1") -> None:
        self._add(id, "HandedOver", second, {"attempt": attempt, "node": node})

    def attempt_lost(self, id: str, attempt: int, second: float) -> None:
        self._add(id, "AttemptLost", second, {"attempt": attempt})

    def ended(self, id: str, kind: str, second: float) -> None:
        self._add(id, kind, second, {}, why=f"cancel-{id}" if kind == "Cancelled" else "")
        if id in self._shown[self._scope_of(id)]:
            self._change(id, second, None)

    def deleted(self, name: str, second: float) -> None:
        self._add(None, "InstanceDeleted", second, {"name": name}, scope=OWNERS[name])

    def _change(self, id: str, second: float, shown: dict[str, Any] | None) -> None:
        scope = self._scope_of(id)
        if shown is None:
            del self._shown[scope][id]
        else:
            self._shown[scope][id] = shown
        self._incarnations[scope] += 1
        data = {"incarnation": self._incarnations[scope]}
        self._add(None, "DocumentChanged", second, data, scope=scope)

    def _add(
        self,
        id: str | None,
        kind: str,
        second: float,
        data: dict[str, Any],
        *,
        scope: str = "",
        by: str = "engine:engine",
        why: str = "",
    ) -> None:
        self.records.add(
            Entry(
                position=str(len(self.records.history)),
                at_ms=_ms(second),
                scope=scope or self._scope_of(id or ""),
                event=id,
                kind=kind,
                by=by,
                why=why,
                data=data,
            )
        )

    def _scope_of(self, id: str) -> str:
        return next(e.scope for e in self.records.history if e.event == id)

    # What the driver writes down.

    def order(
        self, id: str, names: list[str], second: float, *, attempt: int = 1, pid: int = 0
    ) -> int:
        """The pid of the program that was asked to do it."""
        pid = pid or 1000 + len(self.records.driver)
        instances = [
            OrderedInstance(name=name, handle=name, domain=DOMAINS[name]) for name in names
        ]
        self.call("do", id, second, attempt=attempt, pid=pid, node="n1", instances=instances)
        return pid

    def impact(
        self,
        id: str,
        names: list[str],
        second: float,
        *,
        attempt: int = 1,
        lasts: float = 0.4,
        outcome: str = "done",
    ) -> None:
        pid = self.order(id, names, second, attempt=attempt)
        self.call("begin", id, second + 0.01, attempt=attempt, pid=pid)
        self.call("end", id, second + 0.01 + lasts, attempt=attempt, pid=pid, outcome=outcome)

    def call(self, what: str, id: str, second: float, *, attempt: int = 1, **more: Any) -> None:
        more.setdefault("pid", 1)
        self.records.add(DriverCall(what=what, key=id, attempt=attempt, at=at(second), **more))


def good_round() -> RoundBuilder:
    """Every kind of thing that may happen, and nothing that may not."""
    make = RoundBuilder()
    make.poll("web-0", 0)
    # A reboot whose time comes.
    make.scheduled("DUE", ["web-0"], 1, 3)
    make.ask("schedule", "DUE", 0.99, notice="2s")
    make.poll("web-0", 1.5)
    make.seen("DUE", "web-0", 1.51)
    make.started("DUE", 3.001)
    make.impact("DUE", ["web-0"], 3.05)
    make.poll("web-1", 3.1)
    make.ended("DUE", "Completed", 3.5)
    # One that an instance approves, twice.
    make.scheduled("APPROVED", ["web-1"], 4, 1204)
    make.ask("schedule", "APPROVED", 3.99, notice="20m")
    make.poll("web-1", 4.5)
    make.approved("APPROVED", "instance:web-1", 5)
    make.started("APPROVED", 5)
    make.approve("web-1", "APPROVED", 5)
    make.approve("web-1", "APPROVED", 5.1)
    make.approve("db-0", "APPROVED", 5.2, status=400)
    make.impact("APPROVED", ["web-1"], 5.05)
    make.ended("APPROVED", "Completed", 5.5)
    # One that is taken back.
    make.scheduled("CANCELLED", ["web-0"], 6, 8)
    make.ended("CANCELLED", "Cancelled", 6.5)
    make.ask("schedule", "CANCELLED", 5.99, notice="2s")
    make.ask("cancel", "CANCELLED", 6.49)
    # One that a dying node leaves behind, while a failure happens elsewhere in the scope.
    make.scheduled("LOST", ["web-0"], 7, 9)
    make.ask("schedule", "LOST", 6.99, notice="2s")
    make.started("LOST", 9.001)
    make.order("LOST", ["web-0"], 9.05, pid=77)
    make.call("begin", "LOST", 9.06, pid=77)
    make.scheduled("HAPPENED", ["web-1"], 9.2, 10)
    make.ask("schedule", "HAPPENED", 9.19, alreadyHappened=True)
    make.started("HAPPENED", 9.2)
    make.impact("HAPPENED", ["web-1"], 9.25)
    make.ended("HAPPENED", "Completed", 9.7)
    make.call("end", "LOST", 9.8, pid=77, outcome="failed")
    make.attempt_lost("LOST", 1, 19.001)
    make.handed_over("LOST", 2, 19.001, node="n2")
    make.call("find", "LOST", 19.05, attempt=2, outcome="failed")
    make.impact("LOST", ["web-0"], 19.1, attempt=2)
    make.ended("LOST", "Completed", 19.6)
    # An owner's restart that policy approves, where the notice is a real one.
    make.scheduled("POLICY", ["db-0"], 10, 910, operation="restart")
    make.approved("POLICY", "policy:userInitiatedReboot", 10)
    make.started("POLICY", 10)
    make.ask("restart", "POLICY", 9.99)
    make.impact("POLICY", ["db-0"], 10.05)
    make.ended("POLICY", "Completed", 10.5)
    # Two deletes that go together.
    for number, name in enumerate(("workers_0", "workers_1")):
        make.scheduled(f"DELETE-{number}", [name], 11, 311, operation="delete")
        make.ask("delete", f"DELETE-{number}", 10.99)
    make.approved("DELETE-0", "instance:workers_1", 12)
    make.approve("workers_1", "DELETE-0", 12)
    make.approved("DELETE-1", "operator:local", 13)
    make.started("DELETE-0", 13)
    make.started("DELETE-1", 13)
    make.ask("approve", "DELETE-1", 12.99)
    make.impact("DELETE-0", ["workers_0"], 13.05)
    make.impact("DELETE-1", ["workers_1"], 13.06)
    for number, name in enumerate(("workers_0", "workers_1")):
        make.ended(f"DELETE-{number}", "Completed", 13.6)
        make.deleted(name, 13.6)
    for name in ("web-0", "web-1", "db-0"):
        make.poll(name, 25, is_last=True)
    return make
