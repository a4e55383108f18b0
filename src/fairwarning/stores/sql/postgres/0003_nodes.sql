-- expand
-- Which nodes run, and what a node must know to write. No later migration may change this in
-- a way that an older node notices, because from this it learns that it is too old.

-- The oldest schema that a node must know to write: one row.
CREATE TABLE schema_floor (version integer NOT NULL);
INSERT INTO schema_floor (version) VALUES (2);

-- Each write transaction calls this first, with the newest schema that its node knows. Until its
-- end nobody can raise the floor, because a migration that does so locks the table first. So no
-- write slips through behind it. It is volatile, so after a wait it reads the new floor.
CREATE FUNCTION check_writer(newest integer) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    floor integer;
BEGIN
    SELECT version INTO floor FROM schema_floor;
    IF floor > newest THEN
        RAISE EXCEPTION 'schema % must be known to write', floor USING ERRCODE = 'ZF001';
    END IF;
END
$$;

-- The version of fairwarning that ran the migration; null for those before this one.
ALTER TABLE schema_version ADD COLUMN program text;

CREATE TABLE nodes (
    name text COLLATE "C" PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    program text NOT NULL,
    -- The newest schema that the node knows.
    schema_version integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
