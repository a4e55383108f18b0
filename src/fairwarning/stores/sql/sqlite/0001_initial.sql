-- contract: nodes must know schema 1
-- Times are milliseconds since 1970, UTC. Bodies are JSON (stores/codec.py).

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    applied_ms INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000)
);

CREATE TABLE scopes (
    id TEXT PRIMARY KEY NOT NULL,
    subscription TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision > 0),
    incarnation INTEGER NOT NULL,
    activated_ms INTEGER,
    last_seen_ms INTEGER,
    next_deadline_ms INTEGER,
    pending_operations INTEGER NOT NULL CHECK (pending_operations >= 0),
    -- What the scope still carries, in its order; the table `events` keeps all that ever were.
    events TEXT NOT NULL,
    CHECK ((incarnation > 0) = (activated_ms IS NOT NULL))
);

-- The ticker asks for the earliest deadline; most scopes of a quiet fleet have none.
CREATE INDEX scopes_by_deadline ON scopes (next_deadline_ms, id)
WHERE next_deadline_ms IS NOT NULL;

-- Few scopes have operations pending, and a counting transaction adds them up.
CREATE INDEX scopes_with_pending ON scopes (subscription, pending_operations)
WHERE pending_operations > 0;

-- Large and seldom changed, so it is not rewritten with every event.
CREATE TABLE rosters (
    scope_id TEXT PRIMARY KEY NOT NULL REFERENCES scopes (id),
    body TEXT NOT NULL
);

-- The key is the promise that an event id is used at most once, ever.
CREATE TABLE events (
    id TEXT PRIMARY KEY NOT NULL,
    scope_id TEXT NOT NULL REFERENCES scopes (id),
    type TEXT NOT NULL,
    source TEXT NOT NULL,
    phase TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    body TEXT NOT NULL,
    CHECK ((ended_ms IS NULL) = (phase IN ('scheduled', 'started')))
);

CREATE INDEX events_by_phase ON events (phase, created_ms, id);
CREATE INDEX events_by_created ON events (created_ms, id);
CREATE INDEX events_by_scope ON events (scope_id, created_ms, id);

-- The key is the promise that an address belongs to one instance.
CREATE TABLE addresses (
    address TEXT PRIMARY KEY NOT NULL,
    scope_id TEXT NOT NULL REFERENCES scopes (id),
    instance TEXT NOT NULL
) WITHOUT ROWID;

-- Written by one thread and never deleted from, so the numbers follow the commits.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    scope_id TEXT NOT NULL REFERENCES scopes (id),
    revision INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    why TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX journal_by_scope ON journal (scope_id, seq);
