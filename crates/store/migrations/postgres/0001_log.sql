-- Where the log begins and ends: one row, made with the log's name when a program first opens it.
CREATE TABLE fleet_log (
    one               BIGINT  PRIMARY KEY CHECK (one = 1),
    store             TEXT    NOT NULL,
    -- The newest change, under which word of an operator it was made, and what led to it.
    head              BIGINT  NOT NULL,
    epoch             BIGINT  NOT NULL,
    digest            BYTEA   NOT NULL,
    -- How many documents there are at the head. Whoever loads the picture counts and compares.
    documents         BIGINT  NOT NULL,
    -- The changes up to here are forgotten; of the writes up to here, those are kept that make the picture here.
    horizon           BIGINT  NOT NULL,
    horizon_epoch     BIGINT  NOT NULL,
    horizon_digest    BYTEA   NOT NULL
);

-- The log: every change, in order, with what it wrote.
CREATE TABLE fleet_changes (
    revision   BIGINT  PRIMARY KEY,
    epoch      BIGINT  NOT NULL,
    -- For an operator's word: the digest of what it overrules.
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
    -- The place within the change.
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

-- The picture at the head of the log, so that a start reads what is and not all that was.
CREATE TABLE fleet_documents (
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    revision BIGINT  NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire')),
    body     TEXT    NOT NULL,
    checksum BIGINT  NOT NULL,
    PRIMARY KEY (kind, id)
);

-- What is left of changes that are forgotten, so that whoever was away for long can still tell whether it is the same log.
CREATE TABLE fleet_past (
    revision  BIGINT PRIMARY KEY,
    digest    BYTEA NOT NULL,
    overrules BYTEA
);
