-- Each statement: `-- name:`, then why it is as it is, then the statement (stores/migrations.py).
-- Several go to the server in one message, and each sees what was committed before it began.

-- name: has_schema
SELECT to_regclass('schema_version') IS NOT NULL;

-- name: schema_version
SELECT coalesce(max(version), 0) FROM schema_version;

-- name: schema_state
SELECT version, program, (SELECT version FROM schema_floor) AS floor
FROM schema_version
ORDER BY version DESC
LIMIT 1;

-- name: record_version
INSERT INTO schema_version (version) VALUES (%(version)s);

-- name: record_program
UPDATE schema_version SET program = %(program)s WHERE version = %(version)s;

-- name: limit_migration
-- A migrator that falls silent must not keep its locks. Nothing else limits how long it works.
SELECT
    set_config('statement_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', '10s', true);

-- name: try_lock_schema
-- The number is ours by choice; it only has to differ from other programs' in this database.
SELECT pg_try_advisory_xact_lock(7202177281);

-- name: limit_lock_wait
-- While a migration waits for the lock of a table, later writers wait behind it.
SELECT set_config('lock_timeout', %(wait_ms)s::text, true);

-- name: lock_floor
-- Waits for all write transactions that have called `check_writer`, and lets no new one begin.
LOCK TABLE schema_floor IN ACCESS EXCLUSIVE MODE;

-- name: raise_floor
UPDATE schema_floor SET version = greatest(version, %(floor)s);

-- name: check_writer
-- Raises ZF001 if the node may not write. When this waits, the transaction holds no other lock.
SELECT check_writer(%(newest)s);

-- name: running_nodes
SELECT
    name, host, pid, program, schema_version,
    extract(epoch FROM clock_timestamp() - seen_at)::float
FROM nodes
WHERE seen_at > clock_timestamp() - make_interval(secs => %(within_s)s)
ORDER BY name;

-- name: note_node
INSERT INTO nodes (name, host, pid, program, schema_version)
VALUES (%(name)s, %(host)s, %(pid)s, %(program)s, %(schema)s)
ON CONFLICT (name) DO UPDATE SET seen_at = clock_timestamp();

-- name: forget_nodes
DELETE FROM nodes WHERE seen_at < clock_timestamp() - make_interval(secs => %(after_s)s);

-- name: forget_node
DELETE FROM nodes WHERE name = %(name)s;

-- name: backend
SELECT pg_backend_pid(), pg_is_in_recovery();

-- name: limit_schema_wait
SELECT set_config('lock_timeout', '60s', %(is_local)s);

-- name: limit_session
-- No statement and no silent client holds anything for ever. An answer means durable, so a
-- role that is set to answer before its commit is on disk is overruled. Our statements are
-- done before a compiler would be.
SELECT
    set_config('jit', 'off', %(is_local)s),
    set_config('statement_timeout', '30s', %(is_local)s),
    set_config('idle_in_transaction_session_timeout', '30s', %(is_local)s),
    set_config(
        'synchronous_commit',
        CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit')
        END,
        %(is_local)s
    );

-- name: journal_lag
-- How far the journal is ahead of this server's transaction numbers; below 0 if all is well.
SELECT coalesce(max(xid) - journal_number(pg_snapshot_xmax(pg_current_snapshot())), -1)
FROM journal;

-- name: journal_offset
SELECT journal_number('0');

-- name: lock_journal
-- Waits for the writers, so that none goes on with the old numbers.
LOCK TABLE journal IN SHARE ROW EXCLUSIVE MODE;

-- name: shift_journal
CREATE OR REPLACE FUNCTION journal_number(xid8) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $1::text::bigint + %(offset)s;

-- name: begin
-- Whatever the role's default is: a wait for the row lock must end in the newest row.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: commit
COMMIT;

-- name: lock_subscription
-- Before the scope, always, so that two counting transactions cannot wait for each other.
SELECT pg_advisory_xact_lock(hashtextextended(subscription, 0)) FROM scopes WHERE id = %(id)s;

-- name: enter_scope
-- A wait for a row lock may give the transaction its number before it has the lock. A wait for
-- this one does not, so whoever holds it is numbered after all who held it before.
SELECT pg_advisory_xact_lock(hashtextextended(%(id)s, 1));

-- name: try_enter_scope
SELECT pg_try_advisory_xact_lock(hashtextextended(%(id)s, 1));

-- name: lock_scope
-- Against those who write without entering: `note_seen`.
SELECT
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events
FROM scopes
WHERE id = %(id)s
FOR UPDATE;

-- name: lock_free_scope
SELECT
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events
FROM scopes
WHERE id = %(id)s
FOR UPDATE SKIP LOCKED;

-- name: roster
-- Not joined to the lock: after a wait, only the locked row would be read anew.
SELECT body FROM rosters WHERE scope_id = %(id)s;

-- name: clock
-- In a statement of its own: as part of another it could be read before the lock was there.
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: count_pending
SELECT coalesce(sum(pending_operations), 0)::bigint
FROM scopes
WHERE
    subscription = (SELECT subscription FROM scopes WHERE id = %(id)s)
    AND pending_operations > 0;

-- name: read_scope
-- One statement, so that scope and roster are of one instant.
SELECT
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events, body
FROM scopes JOIN rosters ON scope_id = id
WHERE id = %(id)s;

-- name: scope_ids
SELECT id FROM scopes WHERE id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: scopes
SELECT
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events, body
FROM scopes JOIN rosters ON scope_id = id
WHERE id > %(after)s
ORDER BY id
LIMIT %(limit)s;

-- name: find_event
SELECT scope_id, body FROM events WHERE id = %(id)s;

-- name: locate
SELECT scope_id, instance FROM addresses WHERE address = %(address)s;

-- name: due
WITH
moment AS MATERIALIZED (
    SELECT
        coalesce(
            %(now_ms)s::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
        ) AS now_ms
),
due AS (
    SELECT id, next_deadline_ms
    FROM scopes
    WHERE next_deadline_ms <= (SELECT now_ms FROM moment)
    ORDER BY next_deadline_ms, id
    LIMIT %(limit)s
)
SELECT
    now_ms,
    (SELECT coalesce(array_agg(id ORDER BY next_deadline_ms, id), '{}') FROM due),
    (SELECT min(next_deadline_ms) FROM scopes WHERE next_deadline_ms > now_ms)
FROM moment;

-- name: has_entries_held
-- Committed, and yet not to be shown: a transaction with a smaller number may still commit.
SELECT EXISTS (
    SELECT 1
    FROM journal
    WHERE
        xid >= journal_number(pg_snapshot_xmin(pg_current_snapshot()))
        AND (%(scope_id)s::text IS NULL OR scope_id = %(scope_id)s::text)
);

-- name: held_back_ms
-- How long ago the oldest entry was written that is held back, or 0 if none is.
SELECT
    coalesce(
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - min(at_ms), 0
    )
FROM journal
WHERE xid >= journal_number(pg_snapshot_xmin(pg_current_snapshot()));

-- name: feed_holders
-- The transaction that holds the journal back. A role without pg_read_all_stats sees no ages.
SELECT
    'pid ' || pid, application_name, usename, datname,
    floor(extract(epoch FROM clock_timestamp() - xact_start))::bigint
FROM pg_stat_activity
WHERE backend_xid = pg_snapshot_xmin(pg_current_snapshot())::xid
UNION ALL
SELECT
    'prepared transaction ' || gid, '', owner, database,
    floor(extract(epoch FROM clock_timestamp() - prepared))::bigint
FROM pg_prepared_xacts
WHERE transaction = pg_snapshot_xmin(pg_current_snapshot())::xid;

-- name: journal_end
-- Behind all that no running transaction can still add to.
SELECT journal_number(pg_snapshot_xmin(pg_current_snapshot())) - 1;

-- name: journal
SELECT
    xid || '-' || seq, scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body
FROM journal
WHERE
    (xid, seq) > (%(after_xid)s, %(after_seq)s)
    AND xid < journal_number(pg_snapshot_xmin(pg_current_snapshot()))
    AND (%(scope_id)s::text IS NULL OR scope_id = %(scope_id)s::text)
ORDER BY xid, seq
LIMIT %(limit)s;

-- name: commits
-- Also those that are held back: a document is shown as soon as it is stored.
SELECT xid, seq, scope_id, next_deadline_ms
FROM journal LEFT JOIN scopes ON id = scope_id
WHERE xid >= %(from_xid)s
ORDER BY xid, seq;

-- name: newest_held
-- Who looks back waits for no more than what was committed when the question came.
SELECT max(xid)
FROM journal
WHERE
    xid >= journal_number(pg_snapshot_xmin(pg_current_snapshot()))
    AND (%(scope_id)s::text IS NULL OR scope_id = %(scope_id)s::text)
    AND (%(event_id)s::text IS NULL OR event_id = %(event_id)s::text);

-- name: is_let_go
SELECT %(xid)s < journal_number(pg_snapshot_xmin(pg_current_snapshot()));

-- name: history
SELECT
    xid || '-' || seq, scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body
FROM journal
WHERE
    (xid, seq) < (%(before_xid)s, %(before_seq)s)
    AND xid < journal_number(pg_snapshot_xmin(pg_current_snapshot()))
    AND (%(scope_id)s::text IS NULL OR scope_id = %(scope_id)s::text)
    AND (%(event_id)s::text IS NULL OR event_id = %(event_id)s::text)
ORDER BY xid DESC, seq DESC
LIMIT %(limit)s;

-- name: events
SELECT scope_id, body
FROM events
WHERE (created_ms, id) < (%(created_ms)s, %(id)s)
ORDER BY created_ms DESC, id DESC
LIMIT %(limit)s;

-- name: events_of_kinds
-- The newest of each kind, and of those the newest: nothing is read that is not near the page.
-- The lists are constants to the planner, so that it knows how few kinds there are.
SELECT events.scope_id, events.body
FROM (
    SELECT near.id
    FROM
        unnest(string_to_array(%(types)s, ',')) AS types (type),
        unnest(string_to_array(%(sources)s, ',')) AS sources (source),
        unnest(string_to_array(%(phases)s, ',')) AS phases (phase),
        LATERAL (
            SELECT created_ms, id
            FROM events
            WHERE
                events.type = types.type
                AND events.source = sources.source
                AND events.phase = phases.phase
                AND (created_ms, id) < (%(created_ms)s, %(id)s)
            ORDER BY created_ms DESC, id DESC
            LIMIT %(limit)s
        ) AS near
    ORDER BY near.created_ms DESC, near.id DESC
    LIMIT %(limit)s
) AS page
JOIN events USING (id)
ORDER BY events.created_ms DESC, events.id DESC;

-- name: events_of_scope
SELECT events.scope_id, events.body
FROM (
    SELECT near.id
    FROM
        unnest(string_to_array(%(types)s, ',')) AS types (type),
        unnest(string_to_array(%(sources)s, ',')) AS sources (source),
        unnest(string_to_array(%(phases)s, ',')) AS phases (phase),
        LATERAL (
            SELECT created_ms, id
            FROM events
            WHERE
                events.scope_id = %(scope_id)s
                AND events.type = types.type
                AND events.source = sources.source
                AND events.phase = phases.phase
                AND (created_ms, id) < (%(created_ms)s, %(id)s)
            ORDER BY created_ms DESC, id DESC
            LIMIT %(limit)s
        ) AS near
    ORDER BY near.created_ms DESC, near.id DESC
    LIMIT %(limit)s
) AS page
JOIN events USING (id)
ORDER BY events.created_ms DESC, events.id DESC;

-- name: events_of_instance
-- First the few scopes that have an instance of this name, each found behind the last one.
WITH RECURSIVE places (scope_id) AS (
    SELECT min(scope_id) FROM event_instances WHERE instance = %(instance)s
    UNION ALL
    SELECT (
        SELECT min(event_instances.scope_id)
        FROM event_instances
        WHERE instance = %(instance)s AND event_instances.scope_id > places.scope_id
    )
    FROM places
    WHERE places.scope_id IS NOT NULL
)
SELECT events.scope_id, events.body
FROM (
    SELECT near.event_id AS id
    FROM
        places,
        unnest(string_to_array(%(types)s, ',')) AS types (type),
        unnest(string_to_array(%(sources)s, ',')) AS sources (source),
        unnest(string_to_array(%(phases)s, ',')) AS phases (phase),
        LATERAL (
            SELECT created_ms, event_id
            FROM event_instances
            WHERE
                event_instances.instance = %(instance)s
                AND event_instances.scope_id = places.scope_id
                AND event_instances.type = types.type
                AND event_instances.source = sources.source
                AND event_instances.phase = phases.phase
                AND (created_ms, event_id) < (%(created_ms)s, %(id)s)
            ORDER BY created_ms DESC, event_id DESC
            LIMIT %(limit)s
        ) AS near
    WHERE places.scope_id = coalesce(%(scope_id)s, places.scope_id)
    ORDER BY near.created_ms DESC, near.event_id DESC
    LIMIT %(limit)s
) AS page
JOIN events USING (id)
ORDER BY events.created_ms DESC, events.id DESC;

-- name: count_events
SELECT type, phase, count(*) FROM events GROUP BY type, source, phase;

-- name: record
SELECT kind, key, revision, body FROM records WHERE kind = %(kind)s AND key = %(key)s;

-- name: records
SELECT kind, key, revision, body
FROM records
WHERE
    kind = %(kind)s
    AND key > %(after)s
    AND (%(until)s::text IS NULL OR key <= %(until)s::text)
ORDER BY key
LIMIT %(limit)s;

-- name: enter_record
-- As `enter_scope`: the lines of history about one record are numbered in their order.
SELECT pg_advisory_xact_lock(hashtextextended(%(kind)s || '/' || %(key)s, 2));

-- name: put_record
INSERT INTO records (kind, key, revision, body) VALUES (%(kind)s, %(key)s, 1, %(body)s)
ON CONFLICT (kind, key) DO UPDATE SET revision = records.revision + 1, body = excluded.body
RETURNING revision;

-- name: add_record
INSERT INTO records (kind, key, revision, body) VALUES (%(kind)s, %(key)s, 1, %(body)s)
ON CONFLICT (kind, key) DO NOTHING
RETURNING revision;

-- name: change_record
UPDATE records SET revision = revision + 1, body = %(body)s
WHERE kind = %(kind)s AND key = %(key)s AND revision = %(expected)s
RETURNING revision;

-- name: drop_record
DELETE FROM records WHERE kind = %(kind)s AND key = %(key)s RETURNING revision;

-- name: hold_record
-- Locked: whoever wants to change the record waits until this change is stored, and then finds it.
SELECT kind, key
FROM records
WHERE
    kind = %(kind)s
    AND key = %(key)s
    AND revision = %(expected)s
    AND body = %(expected_body)s
FOR SHARE;

-- name: mark_record
UPDATE records SET revision = revision + 1, body = %(body)s
WHERE
    kind = %(kind)s
    AND key = %(key)s
    AND revision = %(expected)s
    AND body = %(expected_body)s
RETURNING kind, key;

-- name: listen
LISTEN fairwarning;

-- name: notify
-- What it tells of is on disk already. So nobody waits until the signal is on disk, too.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('fairwarning', %(payload)s);

-- name: add_scope
INSERT INTO scopes (
    id, subscription, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms,
    pending_operations, events
) VALUES (
    %(id)s, %(subscription)s, %(revision)s, %(incarnation)s, %(activated_ms)s, %(last_seen_ms)s,
    %(next_deadline_ms)s, %(pending_operations)s, %(events)s
);

-- name: change_scope
UPDATE scopes SET
    revision = %(revision)s,
    incarnation = %(incarnation)s,
    activated_ms = %(activated_ms)s,
    last_seen_ms = %(last_seen_ms)s,
    next_deadline_ms = %(next_deadline_ms)s,
    pending_operations = %(pending_operations)s,
    events = %(events)s
WHERE id = %(id)s;

-- name: set_deadline
UPDATE scopes SET next_deadline_ms = %(next_deadline_ms)s WHERE id = %(id)s;

-- name: note_seen
-- Notes may come late and out of order; the latest one counts.
UPDATE scopes SET last_seen_ms = %(at_ms)s
WHERE id = %(id)s AND coalesce(last_seen_ms, 0) < %(at_ms)s;

-- name: add_roster
INSERT INTO rosters (scope_id, body) VALUES (%(scope_id)s, %(body)s);

-- name: change_roster
UPDATE rosters SET body = %(body)s WHERE scope_id = %(scope_id)s;

-- name: remove_address
DELETE FROM addresses WHERE address = %(address)s;

-- name: add_address
INSERT INTO addresses (address, scope_id, instance)
VALUES (%(address)s, %(scope_id)s, %(instance)s);

-- name: add_event
INSERT INTO events (id, scope_id, type, source, phase, created_ms, ended_ms, body)
VALUES (
    %(id)s, %(scope_id)s, %(type)s, %(source)s, %(phase)s, %(created_ms)s, %(ended_ms)s, %(body)s
);

-- name: change_event
UPDATE events SET phase = %(phase)s, ended_ms = %(ended_ms)s, body = %(body)s WHERE id = %(id)s;

-- name: add_event_instances
-- The list comes as JSON. Names have none of its signs in them (core/roster.py), and the
-- planner takes a third of the time for an array that it can work out beforehand.
INSERT INTO event_instances (instance, scope_id, type, source, phase, created_ms, event_id)
SELECT
    name, %(scope_id)s, %(type)s, %(source)s, %(phase)s, %(created_ms)s, %(id)s
FROM unnest(string_to_array(translate(%(instances)s, '[]"', ''), ',')) AS name;

-- name: change_event_instances
UPDATE event_instances SET phase = %(phase)s
WHERE
    instance = ANY (string_to_array(translate(%(instances)s, '[]"', ''), ','))
    AND scope_id = %(scope_id)s
    AND type = %(type)s
    AND source = %(source)s
    AND phase = %(was)s
    AND created_ms = %(created_ms)s
    AND event_id = %(id)s;

-- name: append_entry
INSERT INTO journal (
    scope_id, revision, at_ms, actor_kind, actor_name, why, kind, event_id, body
)
VALUES (
    %(scope_id)s, %(revision)s, %(at_ms)s, %(actor_kind)s, %(actor_name)s, %(why)s, %(kind)s,
    %(event_id)s, %(body)s
);
