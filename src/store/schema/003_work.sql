-- What clusters and jobs are doing.  What their owners want is in `resource`.

CREATE TABLE cluster_state (
    resource_id   INTEGER PRIMARY KEY REFERENCES resource (id) ON DELETE CASCADE,
    uuid          TEXT NOT NULL,    -- last part of stdOutErrPathSuffix
    is_steady     INTEGER NOT NULL,
    steady_ms     INTEGER NOT NULL,
    wanted        INTEGER NOT NULL, -- nodes it is on its way to
    error_code    TEXT NOT NULL,
    error_message TEXT NOT NULL
) STRICT;

-- Rows go with the node; ids and names never come again (meta: last_node).
CREATE TABLE node (
    id            INTEGER PRIMARY KEY,
    cluster_id    INTEGER NOT NULL REFERENCES resource (id) ON DELETE CASCADE,
    name          TEXT NOT NULL UNIQUE,
    state         INTEGER NOT NULL,
    since_ms      INTEGER NOT NULL,
    attempt_id    INTEGER NOT NULL, -- that holds it, 0 = none
    error_code    TEXT NOT NULL,
    error_message TEXT NOT NULL,
    error_info    TEXT NOT NULL
) STRICT;
CREATE INDEX node_by_cluster ON node (cluster_id);

-- `is_unwanted` is the owner's wish; the rest is the conductor's.  The cluster may be gone: no reference.
CREATE TABLE job_state (
    resource_id   INTEGER PRIMARY KEY REFERENCES resource (id) ON DELETE CASCADE,
    cluster_id    INTEGER NOT NULL,
    uuid          TEXT NOT NULL, -- last part of jobOutputDirectoryPathSegment
    is_unwanted   INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    state_ms      INTEGER NOT NULL,
    attempts      INTEGER NOT NULL,
    losses        INTEGER NOT NULL, -- attempts that a lost node ended
    attempt_id    INTEGER NOT NULL,
    started_ms    INTEGER NOT NULL,
    ended_ms      INTEGER NOT NULL,
    exit_code     INTEGER NOT NULL, -- -1 = none, or nobody knows
    error_code    TEXT,
    error_message TEXT,
    error_info    TEXT,
    verdict       TEXT,
    excluded      TEXT NOT NULL     -- JSON array of nodes it must not get again
) STRICT;
CREATE INDEX job_unfinished ON job_state (resource_id) WHERE state < 3;

CREATE TABLE attempt (
    id         INTEGER PRIMARY KEY,
    job_id     INTEGER NOT NULL REFERENCES job_state (resource_id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    ended_ms   INTEGER NOT NULL,
    stop       INTEGER NOT NULL,
    nodes      TEXT NOT NULL, -- JSON array, the master first
    result     TEXT,          -- JSON object when ended
    UNIQUE (job_id, number)
) STRICT;
CREATE INDEX attempt_live ON attempt (id) WHERE state < 3;

-- "Run the jobs that name this image in that one", or on the host.
CREATE TABLE image_map (
    image  TEXT PRIMARY KEY,
    target TEXT NOT NULL -- an image, or 'host'
) STRICT, WITHOUT ROWID;
