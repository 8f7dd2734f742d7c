-- The bounds of the log: one row, created with the log's name when a program first opens it.
CREATE TABLE fleet_log (
    one               INTEGER PRIMARY KEY CHECK (one = 1),
    store             TEXT    NOT NULL,
    -- The newest change, its epoch, and its digest.
    head              INTEGER NOT NULL,
    epoch             INTEGER NOT NULL,
    digest            BLOB    NOT NULL,
    -- The number of documents at the head. A server that loads them compares.
    documents         INTEGER NOT NULL,
    -- Changes up to here are pruned; of their writes, only those of the documents at this revision are kept.
    horizon           INTEGER NOT NULL,
    horizon_epoch     INTEGER NOT NULL,
    horizon_digest    BLOB    NOT NULL
) STRICT;

-- The change log: every change, in order, with its writes.
CREATE TABLE fleet_changes (
    revision   INTEGER PRIMARY KEY,
    epoch      INTEGER NOT NULL,
    -- For an operator's acceptance: the digest that it overrules.
    overrules  BLOB ,
    parent     BLOB    NOT NULL,
    digest     BLOB    NOT NULL,
    -- Microseconds since 1970.
    at         INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT,
    request_id TEXT
) STRICT;

CREATE TABLE fleet_writes (
    revision INTEGER NOT NULL,
    -- The position within the change.
    position INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire', 'remove')),
    body     TEXT    CHECK ((op = 'remove') = (body IS NULL)),
    checksum INTEGER NOT NULL,
    PRIMARY KEY (revision, position)
) STRICT;

-- A change writes a document at most once.
CREATE UNIQUE INDEX fleet_writes_of_document ON fleet_writes (kind, id, revision);

-- The documents at the head of the log, so that a start does not read the whole log.
CREATE TABLE fleet_documents (
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire')),
    body     TEXT    NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;

-- The digests of pruned changes, so that a replica that was away for long can still find out whether it is the same log.
CREATE TABLE fleet_past (
    revision  INTEGER PRIMARY KEY,
    digest    BLOB NOT NULL,
    overrules BLOB 
) STRICT;
