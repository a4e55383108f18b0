-- expand
-- What a program must know to use the file. No later migration may change these two tables in a
-- way that an older program notices: it learns from them that it is too old.

-- The oldest schema that a program must know: one row.
CREATE TABLE schema_floor (version INTEGER NOT NULL);
INSERT INTO schema_floor (version) VALUES (2);

-- The version of fairwarning that ran the migration; null for those before this one.
ALTER TABLE schema_version ADD COLUMN program TEXT;
