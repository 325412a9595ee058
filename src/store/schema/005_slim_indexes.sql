-- What every create writes once more: less of it.  A group is told by the row it is, not by its key; the counter of ids is
-- in `meta` (last_resource), written when resources are removed and not when one is made; indexes end with the row's
-- id by themselves.

-- The highest id may have been of a resource that is gone.
INSERT INTO meta (name, value) SELECT 'last_resource', CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'resource';
CREATE TABLE resource_005 (
    id          INTEGER PRIMARY KEY, -- never comes again: see store_last_resource
    key         TEXT NOT NULL UNIQUE,
    parent_id   INTEGER REFERENCES resource (id),
    kind        TEXT NOT NULL,
    group_id    INTEGER NOT NULL,    -- of the group it is in (a group's own): who may see it
    arm_id      TEXT NOT NULL,
    name        TEXT NOT NULL,
    location    TEXT,
    tags        TEXT,                -- JSON object or NULL
    properties  TEXT NOT NULL,       -- JSON object, what the kind keeps
    state       INTEGER NOT NULL,
    created_ms  INTEGER NOT NULL,
    state_ms    INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    version     INTEGER NOT NULL
) STRICT;
-- A group that is not there is 0: `yard doctor` tells of it.
INSERT INTO resource_005
    SELECT r.id, r.key, r.parent_id, r.kind, coalesce((SELECT g.id FROM resource g WHERE g.key = r.group_key), 0), r.arm_id, r.name,
           r.location, r.tags, r.properties, r.state, r.created_ms, r.state_ms, r.modified_ms, r.version
    FROM resource r ORDER BY r.id;
DROP TABLE resource;
ALTER TABLE resource_005 RENAME TO resource;
CREATE INDEX resource_by_parent ON resource (parent_id, kind);
CREATE INDEX resource_by_kind ON resource (kind);
CREATE INDEX resource_by_group ON resource (group_id);
CREATE UNIQUE INDEX storage_account_name ON resource (name) WHERE kind = 'storage account';
