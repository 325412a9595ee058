-- Every change wrote to an index and a counter that nobody needs: the highest version is looked for once, at the
-- start, and the newest event always stays, so that its number grows without a counter.

CREATE TABLE resource_004 (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    parent_id   INTEGER REFERENCES resource (id),
    kind        TEXT NOT NULL,
    group_key   TEXT NOT NULL, -- of the group it is in (a group's own key): who may see it
    arm_id      TEXT NOT NULL,
    name        TEXT NOT NULL,
    location    TEXT,
    tags        TEXT,          -- JSON object or NULL
    properties  TEXT NOT NULL, -- JSON object, what the kind keeps
    state       INTEGER NOT NULL,
    created_ms  INTEGER NOT NULL,
    state_ms    INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    version     INTEGER NOT NULL
) STRICT;
-- What lay in a group called "providers" had lost the end of its group's key.
INSERT INTO resource_004
    SELECT id, key, parent_id, kind,
           CASE WHEN group_key LIKE '/subscriptions/%/resourcegroups' THEN group_key || '/providers' ELSE group_key END, arm_id, name, location, tags, properties, state, created_ms, state_ms,
           modified_ms, version
    FROM resource ORDER BY id;
-- The highest id may have been of a resource that is gone.
DELETE FROM sqlite_sequence WHERE name = 'resource_004';
INSERT INTO sqlite_sequence (name, seq) SELECT 'resource_004', seq FROM sqlite_sequence WHERE name = 'resource';
DROP TABLE resource;
ALTER TABLE resource_004 RENAME TO resource;
CREATE INDEX resource_by_parent ON resource (parent_id, kind, id);
CREATE INDEX resource_by_kind ON resource (kind, id);
CREATE INDEX resource_by_group ON resource (group_key, id);
CREATE UNIQUE INDEX storage_account_name ON resource (name) WHERE kind = 'storage account';

CREATE TABLE event_004 (
    seq        INTEGER PRIMARY KEY, -- the highest is never removed, so none comes again
    at_ms      INTEGER NOT NULL,
    principal  TEXT NOT NULL,
    peer       TEXT NOT NULL,
    operation  TEXT NOT NULL, -- the route's operation id
    target     TEXT NOT NULL, -- path or ARM id
    request_id TEXT NOT NULL,
    outcome    TEXT NOT NULL, -- 'Succeeded' or the error's code
    detail     TEXT           -- the error's message
) STRICT;
INSERT INTO event_004
    SELECT seq, at_ms, principal, peer, operation, target, request_id, outcome, detail FROM event ORDER BY seq;
-- Where the newest is gone already, one that tells of this takes its number.
INSERT INTO event_004
    SELECT seq, CAST(strftime('%s', 'now') AS INTEGER) * 1000, 'yard', '', 'Yard_Upgrade', '', '', 'Succeeded', NULL
    FROM sqlite_sequence WHERE name = 'event' AND seq > coalesce((SELECT max(seq) FROM event), 0);
DROP TABLE event;
ALTER TABLE event_004 RENAME TO event;
