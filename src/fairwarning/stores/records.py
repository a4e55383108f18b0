"""Records as the SQL stores keep them: which statement to ask, and what its answer means."""

from collections.abc import Iterable, Sequence

from fairwarning.engine.protocols import Fence, FenceBroken, Record
from fairwarning.stores.listeners import record_changed
from fairwarning.stores.rows import Row
from fairwarning.stores.statements import Statement


def keeping(kind: str, key: str, body: str, expected: int | None) -> Statement:
    """Answers with the new revision, or with nothing if the old one is not as expected."""
    values = {"kind": kind, "key": key, "body": body, "expected": expected}
    names = {None: "put_record", 0: "add_record"}
    return Statement(names.get(expected, "change_record"), values)


def kept(asked: Statement, rows: list[Row]) -> Record:
    """Raises RecordChanged."""
    kind, key, body = (str(asked.values[name]) for name in ("kind", "key", "body"))
    if not rows:
        raise record_changed(kind, key)
    return Record(kind=kind, key=key, revision=rows[0][0], body=body)


def dropping(kind: str, key: str) -> Statement:
    """Answers with the revision of what it removed, whichever that is."""
    return Statement("drop_record", {"kind": kind, "key": key})


def dropped(asked: Statement, expected: int | None, rows: list[Row]) -> bool:
    """Raises RecordChanged, and then what was removed must be put back."""
    revision = rows[0][0] if rows else 0
    if expected not in {None, revision}:
        raise record_changed(str(asked.values["kind"]), str(asked.values["key"]))
    return bool(rows)


def fencing(fences: Iterable[Fence]) -> list[Statement]:
    """Each answers with the kind and key of its record, or with nothing if it is another now."""
    return [
        Statement(
            "hold_record" if fence.then is None else "mark_record",
            {
                "kind": fence.record.kind,
                "key": fence.record.key,
                "expected": fence.record.revision,
                "expected_body": fence.record.body,
                "body": fence.then,
            },
        )
        for fence in fences
    ]


def refuse_broken(fences: Iterable[Fence], rows: Sequence[Row]) -> None:
    """Raises FenceBroken; `rows` are all answers to `fencing`."""
    found = {(kind, key) for kind, key in rows}
    for fence in fences:
        if (fence.record.kind, fence.record.key) not in found:
            raise FenceBroken(fence)
