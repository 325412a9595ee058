-- Shares: what a folder tree cannot say about itself.  Bytes, names and sizes are the file
-- system's; see docs/design/storage.md.

-- A share is there when its folder is; the row holds the rest.  Ids are never used twice: the
-- rows of a deleted share's files may linger.
CREATE TABLE share (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    account          TEXT NOT NULL,
    name             TEXT NOT NULL,
    etag             TEXT NOT NULL,
    created_ms       INTEGER NOT NULL,
    modified_ms      INTEGER NOT NULL,
    quota_gib        INTEGER NOT NULL,
    tier             TEXT,
    protocols        TEXT,
    metadata         TEXT, -- JSON object or NULL
    policies         TEXT, -- JSON array or NULL
    lease_id         TEXT, -- NULL = never leased
    lease_expires_ms INTEGER NOT NULL DEFAULT 0,
    lease_breaks_ms  INTEGER NOT NULL DEFAULT 0,
    lease_duration_s INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account, name)
) STRICT;

-- Shares that are gone while rows of their files are not yet.
CREATE TABLE doomed_share (
    id INTEGER PRIMARY KEY
) STRICT;

-- Facts of the file or directory with that inode number and birth time, whatever its name is
-- today: a rename, by whomever, takes them along.  A row whose birth time is not the file's is
-- of a file that is gone.
CREATE TABLE file (
    share_id            INTEGER NOT NULL,
    inode               INTEGER NOT NULL,
    born_ns             INTEGER NOT NULL,
    mtime_ns            INTEGER NOT NULL, -- size and mtime as they were: else changed in place
    size_bytes          INTEGER NOT NULL,
    etag                TEXT NOT NULL,
    created_ns          INTEGER NOT NULL, -- as a client set it; the least number = when born
    content_type        TEXT,
    content_encoding    TEXT,
    content_language    TEXT,
    content_disposition TEXT,
    cache_control       TEXT,
    content_md5         TEXT,
    metadata            TEXT,
    attributes          TEXT,
    permission_key      TEXT,
    lease_id            TEXT,
    lease_expires_ms    INTEGER NOT NULL,
    lease_breaks_ms     INTEGER NOT NULL,
    lease_duration_s    INTEGER NOT NULL,
    copy_id             TEXT,
    copy_source         TEXT,
    copied_ms           INTEGER NOT NULL,
    PRIMARY KEY (share_id, inode)
) STRICT, WITHOUT ROWID;

-- Security descriptors that clients registered: kept as they are, never interpreted.
CREATE TABLE file_permission (
    share_id INTEGER NOT NULL,
    key      TEXT NOT NULL,
    text     TEXT NOT NULL,
    PRIMARY KEY (share_id, key)
) STRICT, WITHOUT ROWID;
