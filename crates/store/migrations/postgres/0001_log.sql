-- The bounds of the log: one row, created with the log's name when a program first opens it.
CREATE TABLE fleet_log (
    one               BIGINT  PRIMARY KEY CHECK (one = 1),
    store             TEXT    NOT NULL,
    -- The newest change, its epoch, and its digest.
    head              BIGINT  NOT NULL,
    epoch             BIGINT  NOT NULL,
    digest            BYTEA   NOT NULL,
    -- The number of documents at the head. A server that loads them compares.
    documents         BIGINT  NOT NULL,
    -- Changes up to here are pruned; of their writes, only those of the documents at this revision are kept.
    horizon           BIGINT  NOT NULL,
    horizon_epoch     BIGINT  NOT NULL,
    horizon_digest    BYTEA   NOT NULL
);

-- The change log: every change, in order, with its writes.
CREATE TABLE fleet_changes (
    revision   BIGINT  PRIMARY KEY,
    epoch      BIGINT  NOT NULL,
    -- For an operator's acceptance: the digest that it overrules.
    overrules  BYTEA,
    parent     BYTEA   NOT NULL,
    digest     BYTEA   NOT NULL,
    -- Microseconds since 1970.
    at         BIGINT  NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT,
    request_id TEXT
);

CREATE TABLE fleet_writes (
    revision BIGINT  NOT NULL,
    -- The position within the change.
    position BIGINT  NOT NULL,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire', 'remove')),
    body     TEXT    CHECK ((op = 'remove') = (body IS NULL)),
    checksum BIGINT  NOT NULL,
    PRIMARY KEY (revision, position)
);

-- A change writes a document at most once.
CREATE UNIQUE INDEX fleet_writes_of_document ON fleet_writes (kind, id, revision);

-- The documents at the head of the log, so that a start does not read the whole log.
CREATE TABLE fleet_documents (
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    revision BIGINT  NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire')),
    body     TEXT    NOT NULL,
    checksum BIGINT  NOT NULL,
    PRIMARY KEY (kind, id)
);

-- The digests of pruned changes, so that a replica that was away for long can still find out whether it is the same log.
CREATE TABLE fleet_past (
    revision  BIGINT PRIMARY KEY,
    digest    BYTEA NOT NULL,
    overrules BYTEA
);
