-- Storage accounts that are gone while their data may still lie on disk.  A row goes when the data has.
CREATE TABLE doomed_account (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
