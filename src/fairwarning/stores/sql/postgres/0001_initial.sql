-- contract: nodes must know schema 1
-- Times are milliseconds since 1970, UTC. Bodies are JSON (stores/codec.py): json and not
-- jsonb, which would lose the order of keys. Keys are compared byte by byte (COLLATE "C"), so
-- that every database, whatever its locale, has the order of every other store.

CREATE TABLE schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE scopes (
    id text COLLATE "C" PRIMARY KEY,
    subscription text COLLATE "C" NOT NULL,
    revision bigint NOT NULL CHECK (revision > 0),
    incarnation bigint NOT NULL,
    activated_ms bigint,
    last_seen_ms bigint,
    next_deadline_ms bigint,
    pending_operations integer NOT NULL CHECK (pending_operations >= 0),
    -- What the scope still carries, in its order; the table `events` keeps all that ever were.
    events json NOT NULL,
    CHECK ((incarnation > 0) = (activated_ms IS NOT NULL))
);

-- The ticker asks for the earliest deadline; most scopes of a quiet fleet have none.
CREATE INDEX scopes_by_deadline ON scopes (next_deadline_ms, id)
WHERE next_deadline_ms IS NOT NULL;

-- Few scopes have operations pending, and a counting transaction adds them up.
CREATE INDEX scopes_with_pending ON scopes (subscription)
WHERE pending_operations > 0;

-- Large and seldom changed, so it is not rewritten with every event.
CREATE TABLE rosters (
    scope_id text COLLATE "C" PRIMARY KEY REFERENCES scopes (id),
    body json NOT NULL
);

-- The key is the promise that an event id is used at most once, ever.
CREATE TABLE events (
    id text COLLATE "C" PRIMARY KEY,
    scope_id text COLLATE "C" NOT NULL REFERENCES scopes (id),
    type text NOT NULL,
    source text NOT NULL,
    phase text NOT NULL,
    created_ms bigint NOT NULL,
    ended_ms bigint,
    body json NOT NULL,
    CHECK ((ended_ms IS NULL) = (phase IN ('scheduled', 'started')))
);

CREATE INDEX events_by_phase ON events (phase, created_ms, id);
CREATE INDEX events_by_created ON events (created_ms, id);
CREATE INDEX events_by_scope ON events (scope_id, created_ms, id);

-- The key is the promise that an address belongs to one instance.
CREATE TABLE addresses (
    address text COLLATE "C" PRIMARY KEY,
    scope_id text COLLATE "C" NOT NULL REFERENCES scopes (id),
    instance text COLLATE "C" NOT NULL
);

-- The number of a transaction, as the journal counts them. A dump that is restored into
-- another server meets smaller numbers there; then this function is replaced by one that adds
-- what is missing, so that the journal goes on behind its last entry (`shift_journal`).
CREATE FUNCTION journal_number(xid8) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $1::text::bigint + 0;

-- The theory of its order is in stores/postgres/journal.py.
CREATE TABLE journal (
    xid bigint NOT NULL DEFAULT journal_number(pg_current_xact_id()),
    seq bigint GENERATED ALWAYS AS IDENTITY,
    scope_id text COLLATE "C" NOT NULL REFERENCES scopes (id),
    revision bigint NOT NULL,
    at_ms bigint NOT NULL,
    actor_kind text NOT NULL,
    actor_name text NOT NULL,
    why text NOT NULL,
    kind text NOT NULL,
    body json NOT NULL,
    PRIMARY KEY (xid, seq)
);

CREATE INDEX journal_by_scope ON journal (scope_id, xid, seq);
