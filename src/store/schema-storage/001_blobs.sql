-- Blobs: what a file cannot say about itself.  The bytes, and which names exist, are the file
-- system's; see docs/design/storage.md.

-- A container is there when its folder is; the row holds the rest.  Ids are never used twice:
-- the rows of a deleted container's blobs may linger.
CREATE TABLE container (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    account          TEXT NOT NULL,
    name             TEXT NOT NULL,
    etag             TEXT NOT NULL,
    created_ms       INTEGER NOT NULL,
    modified_ms      INTEGER NOT NULL,
    metadata         TEXT, -- JSON object or NULL
    policies         TEXT, -- JSON array or NULL
    lease_id         TEXT, -- NULL = never leased
    lease_expires_ms INTEGER NOT NULL DEFAULT 0,
    lease_breaks_ms  INTEGER NOT NULL DEFAULT 0,
    lease_duration_s INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account, name)
) STRICT;

-- Containers that are gone while rows of their blobs are not yet.
CREATE TABLE doomed_container (
    id INTEGER PRIMARY KEY
) STRICT;

-- Facts of the file with that inode number and birth time, should it be found under that name.
-- Several rows of one name are one that holds and others that did or never will.
CREATE TABLE blob (
    container_id        INTEGER NOT NULL,
    name                TEXT NOT NULL,
    snapshot            TEXT NOT NULL, -- its time, '' = the blob itself
    inode               INTEGER NOT NULL,
    born_ns             INTEGER NOT NULL,
    mtime_ns            INTEGER NOT NULL, -- size and mtime as they were: else changed in place
    size_bytes          INTEGER NOT NULL,
    is_odd              INTEGER NOT NULL, -- in odd/, not in tree/
    type                INTEGER NOT NULL, -- 0 block, 1 append, 2 page
    etag                TEXT NOT NULL,
    created_ms          INTEGER NOT NULL,
    modified_ms         INTEGER NOT NULL,
    content_type        TEXT,
    content_encoding    TEXT,
    content_language    TEXT,
    content_disposition TEXT,
    cache_control       TEXT,
    content_md5         TEXT,
    metadata            TEXT,
    tags                TEXT,
    tier                TEXT,
    sequence            INTEGER NOT NULL,
    block_count         INTEGER NOT NULL,
    lease_id            TEXT,
    lease_expires_ms    INTEGER NOT NULL,
    lease_breaks_ms     INTEGER NOT NULL,
    lease_duration_s    INTEGER NOT NULL,
    copy_id             TEXT,
    copy_source         TEXT,
    copied_ms           INTEGER NOT NULL,
    PRIMARY KEY (container_id, name, snapshot, inode, born_ns)
) STRICT, WITHOUT ROWID;
CREATE INDEX odd_blob ON blob (container_id, name) WHERE is_odd = 1;

-- The committed blocks of a blob that was made of blocks: see store/blob.h for the bytes.
CREATE TABLE block_list (
    container_id INTEGER NOT NULL,
    name         TEXT NOT NULL,
    snapshot     TEXT NOT NULL,
    inode        INTEGER NOT NULL,
    born_ns      INTEGER NOT NULL,
    list         BLOB NOT NULL,
    PRIMARY KEY (container_id, name, snapshot, inode, born_ns)
) STRICT, WITHOUT ROWID;

-- Names whose file was about to be swapped or removed.  Left behind by a crash, they are where
-- to look: the row that agrees with the file stays, others go.
CREATE TABLE unsettled (
    container_id INTEGER NOT NULL,
    name         TEXT NOT NULL,
    snapshot     TEXT NOT NULL,
    PRIMARY KEY (container_id, name, snapshot)
) STRICT, WITHOUT ROWID;

-- Names that have uncommitted blocks; the blocks are files, named by the hash of the name.
CREATE TABLE staged (
    container_id INTEGER NOT NULL,
    name         TEXT NOT NULL,
    staged_ms    INTEGER NOT NULL,
    PRIMARY KEY (container_id, name)
) STRICT, WITHOUT ROWID;
