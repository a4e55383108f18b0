-- contract: nodes must know schema 2
-- What the control plane needs: records, lists of events, and the story of one event.

-- Small documents of the control plane. The body is text, because nobody looks into it here.
CREATE TABLE records (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL CHECK (revision > 0),
    body text NOT NULL,
    PRIMARY KEY (kind, key)
);

-- A body with \u0000 in it can be stored and not be looked into; its picture can.
CREATE FUNCTION pg_temp.readable(json) RETURNS json
LANGUAGE sql IMMUTABLE
RETURN regexp_replace($1::text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u2400', 'g')::json;

-- A line outside all scopes has the scope_id ''.
ALTER TABLE journal DROP CONSTRAINT journal_scope_id_fkey;
ALTER TABLE journal ADD COLUMN event_id text COLLATE "C";

UPDATE journal SET
    event_id = coalesce(
        pg_temp.readable(body) ->> 'event_id', pg_temp.readable(body) #>> '{event,id}'
    );

CREATE INDEX journal_by_event ON journal (event_id, xid, seq) WHERE event_id IS NOT NULL;

-- A list of events is put together from one short range of an index for each type, source and
-- phase that it may show, so that a page costs the same however rare its events are.
DROP INDEX events_by_phase;
DROP INDEX events_by_scope;
CREATE INDEX events_by_kind ON events (type, source, phase, created_ms, id);
CREATE INDEX events_by_scope ON events (scope_id, type, source, phase, created_ms, id);

-- The same for the events of an instance.
CREATE TABLE event_instances (
    instance text COLLATE "C" NOT NULL,
    scope_id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    phase text COLLATE "C" NOT NULL,
    created_ms bigint NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (instance, scope_id, type, source, phase, created_ms, event_id)
);

INSERT INTO event_instances (instance, scope_id, type, source, phase, created_ms, event_id)
SELECT name, scope_id, type, source, phase, created_ms, id
FROM events, json_array_elements_text(pg_temp.readable(body) -> 'resources') AS name
ON CONFLICT DO NOTHING;
