-- Each statement: `-- name:`, then why it is as it is, then the statement (stores/migrations.py).

-- name: has_schema
SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version');

-- name: schema_version
SELECT coalesce(max(version), 0) FROM schema_version;

-- name: schema_state
SELECT version, program, (SELECT version FROM schema_floor) AS floor
FROM schema_version
ORDER BY version DESC
LIMIT 1;

-- name: record_version
INSERT INTO schema_version (version) VALUES (:version);

-- name: record_program
UPDATE schema_version SET program = :program WHERE version = :version;

-- name: raise_floor
UPDATE schema_floor SET version = max(version, :floor);

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

-- name: history
SELECT
    CAST(seq AS TEXT), scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body
FROM journal
WHERE seq < :before
ORDER BY seq DESC
LIMIT :limit;

-- name: history_of_scope
SELECT
    CAST(seq AS TEXT), scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body
FROM journal
WHERE scope_id = :scope_id AND seq < :before
ORDER BY seq DESC
LIMIT :limit;

-- name: history_of_event
SELECT
    CAST(seq AS TEXT), scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body
FROM journal
WHERE event_id = :event_id AND seq < :before AND (:scope_id IS NULL OR scope_id = :scope_id)
ORDER BY seq DESC
LIMIT :limit;

-- name: events
SELECT scope_id, body
FROM events
WHERE (created_ms, id) < (:created_ms, :id)
ORDER BY created_ms DESC, id DESC
LIMIT :limit;

-- name: events_of_kinds
-- The newest of each kind, and of those the newest: nothing is read that is not near the page.
-- CROSS JOIN keeps the order in which the tables are written.
SELECT events.scope_id, events.body
FROM json_each(:types) AS types
CROSS JOIN json_each(:sources) AS sources
CROSS JOIN json_each(:phases) AS phases
CROSS JOIN events
WHERE
    events.rowid IN (
        SELECT near.rowid
        FROM events AS near
        WHERE
            near.type = types.value
            AND near.source = sources.value
            AND near.phase = phases.value
            AND (near.created_ms, near.id) < (:created_ms, :id)
        ORDER BY near.created_ms DESC, near.id DESC
        LIMIT :limit
    )
ORDER BY events.created_ms DESC, events.id DESC
LIMIT :limit;

-- name: events_of_scope
SELECT events.scope_id, events.body
FROM json_each(:types) AS types
CROSS JOIN json_each(:sources) AS sources
CROSS JOIN json_each(:phases) AS phases
CROSS JOIN events
WHERE
    events.rowid IN (
        SELECT near.rowid
        FROM events AS near
        WHERE
            near.scope_id = :scope_id
            AND near.type = types.value
            AND near.source = sources.value
            AND near.phase = phases.value
            AND (near.created_ms, near.id) < (:created_ms, :id)
        ORDER BY near.created_ms DESC, near.id DESC
        LIMIT :limit
    )
ORDER BY events.created_ms DESC, events.id DESC
LIMIT :limit;

-- name: events_of_instance
-- First the few scopes that have an instance of this name, each found behind the last one.
WITH RECURSIVE places (scope_id) AS (
    SELECT min(scope_id) FROM event_instances WHERE instance = :instance
    UNION ALL
    SELECT (
        SELECT min(event_instances.scope_id)
        FROM event_instances
        WHERE instance = :instance AND event_instances.scope_id > places.scope_id
    )
    FROM places
    WHERE places.scope_id IS NOT NULL
)
SELECT events.scope_id, events.body
FROM places
CROSS JOIN json_each(:types) AS types
CROSS JOIN json_each(:sources) AS sources
CROSS JOIN json_each(:phases) AS phases
CROSS JOIN events
WHERE
    places.scope_id = coalesce(:scope_id, places.scope_id)
    AND events.id IN (
        SELECT near.event_id
        FROM event_instances AS near
        WHERE
            near.instance = :instance
            AND near.scope_id = places.scope_id
            AND near.type = types.value
            AND near.source = sources.value
            AND near.phase = phases.value
            AND (near.created_ms, near.event_id) < (:created_ms, :id)
        ORDER BY near.created_ms DESC, near.event_id DESC
        LIMIT :limit
    )
ORDER BY events.created_ms DESC, events.id DESC
LIMIT :limit;

-- name: count_events
SELECT type, phase, count(*) FROM events GROUP BY type, source, phase;

-- name: record
SELECT kind, key, revision, body FROM records WHERE kind = :kind AND key = :key;

-- name: records
-- A blob comes after every text. An OR would go on reading behind the last one.
SELECT kind, key, revision, body
FROM records
WHERE kind = :kind AND key > :after AND key <= coalesce(:until, x'')
ORDER BY key
LIMIT :limit;

-- name: put_record
INSERT INTO records (kind, key, revision, body) VALUES (:kind, :key, 1, :body)
ON CONFLICT (kind, key) DO UPDATE SET revision = revision + 1, body = excluded.body
RETURNING revision;

-- name: add_record
INSERT INTO records (kind, key, revision, body) VALUES (:kind, :key, 1, :body)
ON CONFLICT (kind, key) DO NOTHING
RETURNING revision;

-- name: change_record
UPDATE records SET revision = revision + 1, body = :body
WHERE kind = :kind AND key = :key AND revision = :expected
RETURNING revision;

-- name: drop_record
DELETE FROM records WHERE kind = :kind AND key = :key RETURNING revision;

-- name: hold_record
SELECT kind, key
FROM records
WHERE kind = :kind AND key = :key AND revision = :expected AND body = :expected_body;

-- name: mark_record
UPDATE records SET revision = revision + 1, body = :body
WHERE kind = :kind AND key = :key AND revision = :expected AND body = :expected_body
RETURNING kind, key;

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

-- name: add_event_instances
INSERT INTO event_instances (instance, scope_id, type, source, phase, created_ms, event_id)
SELECT value, :scope_id, :type, :source, :phase, :created_ms, :id FROM json_each(:instances);

-- name: change_event_instances
UPDATE event_instances SET phase = :phase
WHERE
    instance IN (SELECT value FROM json_each(:instances))
    AND scope_id = :scope_id
    AND type = :type
    AND source = :source
    AND phase = :was
    AND created_ms = :created_ms
    AND event_id = :id;

-- name: append_entry
INSERT INTO journal (
    scope_id, revision, at_ms, actor_kind, actor_name, why, kind, event_id, body
)
VALUES (
    :scope_id, :revision, :at_ms, :actor_kind, :actor_name, :why, :kind, :event_id, :body
);
