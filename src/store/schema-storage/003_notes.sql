-- Small texts of an account that are no blob's: its service properties.
CREATE TABLE note (
    account TEXT NOT NULL,
    name    TEXT NOT NULL,
    text    TEXT NOT NULL,
    PRIMARY KEY (account, name)
) STRICT, WITHOUT ROWID;
