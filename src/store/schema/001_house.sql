-- The house: what a yard is, what it holds, who may touch it, what happened.

-- Facts about this yard: subscription_id and tenant_id, written once; last_version, the highest
-- that a resource had when one was last removed.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Every resource of every kind.  `key` is the ARM id in lower case; `state` is core's enum.
CREATE TABLE resource (
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
    version     INTEGER NOT NULL UNIQUE
) STRICT;
CREATE INDEX resource_by_parent ON resource (parent_id, kind, id);
CREATE INDEX resource_by_kind ON resource (kind, id);
CREATE INDEX resource_by_group ON resource (group_key, id);
-- Storage account names are host names: one of each in the whole yard.
CREATE UNIQUE INDEX storage_account_name ON resource (name) WHERE kind = 'storage account';

-- Secrets of resources, sealed with the yard's key file.  Never in `properties`.
CREATE TABLE secret (
    resource_id INTEGER NOT NULL REFERENCES resource (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    sealed      TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    PRIMARY KEY (resource_id, name)
) STRICT, WITHOUT ROWID;

-- Long-running operations.  `resource_id` outlives its row: no reference.
CREATE TABLE operation (
    id            TEXT PRIMARY KEY,
    kind          INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    resource_id   INTEGER NOT NULL,
    target        TEXT NOT NULL,
    group_key     TEXT NOT NULL,
    started_ms    INTEGER NOT NULL,
    ended_ms      INTEGER NOT NULL,
    error_code    TEXT,
    error_message TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_running ON operation (state) WHERE state = 0;
CREATE INDEX operation_by_resource ON operation (resource_id);

-- Who may come in.  Tokens are kept as SHA-256, never themselves.
CREATE TABLE principal (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    client_id  TEXT NOT NULL UNIQUE,
    token_hash TEXT NOT NULL UNIQUE, -- hex
    role       TEXT NOT NULL,
    scope      TEXT NOT NULL,        -- '' = the whole yard, else a group's key
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL      -- 0 = never
) STRICT;

-- The audit log and event log in one: every change that was asked for, in order, with its outcome.
CREATE TABLE event (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms      INTEGER NOT NULL,
    principal  TEXT NOT NULL,
    peer       TEXT NOT NULL,
    operation  TEXT NOT NULL, -- the route's operation id
    target     TEXT NOT NULL, -- path or ARM id
    request_id TEXT NOT NULL,
    outcome    TEXT NOT NULL, -- 'Succeeded' or the error's code
    detail     TEXT           -- the error's message
) STRICT;
