-- contract: nodes must know schema 2
-- What the control plane needs: records, lists of events, and the story of one event.

-- Small documents of the control plane; keys are compared byte by byte.
CREATE TABLE records (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision > 0),
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;

-- The journal anew, because only so it loses its foreign key: a line outside all scopes has
-- the scope_id ''. A body that cannot be read is left for the reader to complain about.
CREATE TABLE new_journal (
    seq INTEGER PRIMARY KEY,
    scope_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    why TEXT NOT NULL,
    kind TEXT NOT NULL,
    event_id TEXT,
    body TEXT NOT NULL
);

INSERT INTO new_journal (
    seq, scope_id, revision, at_ms, actor_kind, actor_name, why, kind, event_id, body
)
SELECT
    seq, scope_id, revision, at_ms, actor_kind, actor_name, why, kind,
    CASE WHEN json_valid(body)
        THEN coalesce(json_extract(body, '$.event_id'), json_extract(body, '$.event.id'))
    END,
    body
FROM journal;

DROP TABLE journal;
ALTER TABLE new_journal RENAME TO journal;

CREATE INDEX journal_by_scope ON journal (scope_id, seq);
CREATE INDEX journal_by_event ON journal (event_id, seq) WHERE event_id IS NOT NULL;

-- A list of events is put together from one short range of an index for each type, source and
-- phase that it may show, so that a page costs the same however rare its events are.
DROP INDEX events_by_phase;
DROP INDEX events_by_scope;
CREATE INDEX events_by_kind ON events (type, source, phase, created_ms, id);
CREATE INDEX events_by_scope ON events (scope_id, type, source, phase, created_ms, id);

-- The same for the events of an instance.
CREATE TABLE event_instances (
    instance TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    type TEXT NOT NULL,
    source TEXT NOT NULL,
    phase TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (instance, scope_id, type, source, phase, created_ms, event_id)
) WITHOUT ROWID;

INSERT OR IGNORE INTO event_instances (
    instance, scope_id, type, source, phase, created_ms, event_id
)
SELECT value, scope_id, events.type, source, phase, created_ms, events.id
FROM events
JOIN json_each(CASE WHEN json_valid(body) THEN body ELSE '{}' END, '$.resources');
