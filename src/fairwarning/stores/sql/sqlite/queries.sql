-- Each statement: `-- name:`, then why it is as it is, then the statement (stores/queries.py).

-- name: has_schema
SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version');

-- name: schema_version
SELECT coalesce(max(version), 0) FROM schema_version;

-- name: read_scope
-- One statement, so that scope and roster are of one instant.
SELECT
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events, body
FROM scopes JOIN rosters ON scope_id = id
WHERE id = :id;

-- name: count_pending
SELECT coalesce(sum(pending_operations), 0)
FROM scopes
WHERE subscription = :subscription AND pending_operations > 0;

-- name: scope_ids
SELECT id FROM scopes WHERE id > :after ORDER BY id LIMIT :limit;

-- name: scopes
SELECT
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events, body
FROM scopes JOIN rosters ON scope_id = id
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: find_event
SELECT scope_id, body FROM events WHERE id = :id;

-- name: locate
SELECT scope_id, instance FROM addresses WHERE address = :address;

-- name: due
SELECT id
FROM scopes
WHERE next_deadline_ms <= :now_ms
ORDER BY next_deadline_ms, id
LIMIT :limit;

-- name: next_deadline
SELECT min(next_deadline_ms) FROM scopes WHERE next_deadline_ms > :now_ms;

-- name: journal_end
SELECT coalesce(max(seq), 0) FROM journal;

-- name: journal
SELECT
    CAST(seq AS TEXT), scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body
FROM journal
WHERE seq > :after
ORDER BY seq
LIMIT :limit;

-- name: journal_of_scope
SELECT
    CAST(seq AS TEXT), scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body
FROM journal
WHERE scope_id = :scope_id AND seq > :after
ORDER BY seq
LIMIT :limit;

-- name: add_scope
INSERT INTO scopes (
    id, subscription, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms,
    pending_operations, events
) VALUES (
    :id, :subscription, :revision, :incarnation, :activated_ms, :last_seen_ms, :next_deadline_ms,
    :pending_operations, :events
);

-- name: change_scope
UPDATE scopes SET
    revision = :revision,
    incarnation = :incarnation,
    activated_ms = :activated_ms,
    last_seen_ms = :last_seen_ms,
    next_deadline_ms = :next_deadline_ms,
    pending_operations = :pending_operations,
    events = :events
WHERE id = :id;

-- name: set_deadline
UPDATE scopes SET next_deadline_ms = :next_deadline_ms WHERE id = :id;

-- name: note_seen
-- Notes may come late and out of order; the latest one counts.
UPDATE scopes SET last_seen_ms = :at_ms WHERE id = :id AND coalesce(last_seen_ms, 0) < :at_ms;

-- name: add_roster
INSERT INTO rosters (scope_id, body) VALUES (:scope_id, :body);

-- name: change_roster
UPDATE rosters SET body = :body WHERE scope_id = :scope_id;

-- name: remove_address
DELETE FROM addresses WHERE address = :address;

-- name: add_address
INSERT INTO addresses (address, scope_id, instance) VALUES (:address, :scope_id, :instance);

-- name: add_event
INSERT INTO events (id, scope_id, type, source, phase, created_ms, ended_ms, body)
VALUES (:id, :scope_id, :type, :source, :phase, :created_ms, :ended_ms, :body);

-- name: change_event
UPDATE events SET phase = :phase, ended_ms = :ended_ms, body = :body WHERE id = :id;

-- name: append_entry
INSERT INTO journal (scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body)
VALUES (:scope_id, :revision, :at_ms, :actor_kind, :actor_name, :why, :kind, :body);
