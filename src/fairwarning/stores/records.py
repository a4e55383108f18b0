"""Makes the SQL statements for records and fences, and interprets the rows they return."""

from collections.abc import Iterable, Sequence

from fairwarning.engine.protocols import Fence, FenceBroken, Record
from fairwarning.stores.codec import Row
from fairwarning.stores.listeners import record_changed
from fairwarning.stores.statements import Statement


def put_statement(kind: str, key: str, body: str, expected: int | None) -> Statement:
    """Returns a statement that writes a record, if its revision is `expected`.

    With 0 there must be no such record yet, and with None any revision will do. The statement
    returns one row with the new revision, or no row if it did not write.
    """
    values = {"kind": kind, "key": key, "body": body, "expected": expected}
    names = {None: "put_record", 0: "add_record"}
    return Statement(names.get(expected, "change_record"), values)


def record_put(statement: Statement, rows: list[Row]) -> Record:
    """Returns the record that was written. Raises RecordChanged if there is no row."""
    kind, key, body = (str(statement.values[name]) for name in ("kind", "key", "body"))
    if not rows:
        raise record_changed(kind, key)
    return Record(kind=kind, key=key, revision=rows[0][0], body=body)


def delete_statement(kind: str, key: str) -> Statement:
    """Returns a statement that deletes a record and returns a row with its revision, if any."""
    return Statement("drop_record", {"kind": kind, "key": key})


def was_deleted(statement: Statement, expected: int | None, rows: list[Row]) -> bool:
    """Returns whether a record was deleted. Raises RecordChanged if it was not at `expected`."""
    revision = rows[0][0] if rows else 0
    if expected not in {None, revision}:
        raise record_changed(str(statement.values["kind"]), str(statement.values["key"]))
    return bool(rows)


def fence_statements(fences: Iterable[Fence]) -> list[Statement]:
    """Returns a statement for each fence, which checks the record and writes `then`, if any. The
    statement returns the kind and key of the record, or no row if the record has changed.
    """
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


def refuse_broken_fences(fences: Iterable[Fence], rows: Sequence[Row]) -> None:
    """Raises FenceBroken if a fence has no row in `rows`, the rows of all `fence_statements`."""
    found = {(kind, key) for kind, key in rows}
    for fence in fences:
        if (fence.record.kind, fence.record.key) not in found:
            raise FenceBroken(fence)
