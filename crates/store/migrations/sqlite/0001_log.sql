-- The log: every change, in order, with what it wrote.
CREATE TABLE changes (
    revision   INTEGER PRIMARY KEY,
    -- Microseconds since 1970.
    at         INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT,
    request_id TEXT,
    -- How many documents there are after this change. Whoever loads the picture counts and compares.
    documents  INTEGER NOT NULL
) STRICT;

CREATE TABLE writes (
    revision INTEGER NOT NULL,
    -- The place within the change.
    position INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire', 'remove')),
    body     TEXT    CHECK ((op = 'remove') = (body IS NULL)),
    checksum INTEGER NOT NULL,
    PRIMARY KEY (revision, position)
) STRICT;

-- A change writes a document at most once.
CREATE UNIQUE INDEX writes_of_document ON writes (kind, id, revision);

-- The picture at the head of the log, so that a start reads what is and not all that was.
CREATE TABLE documents (
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire')),
    body     TEXT    NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;

-- The changes up to here are forgotten; of the writes up to here, those are kept that make the picture here.
CREATE TABLE horizon (
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO horizon (revision) VALUES (0);
