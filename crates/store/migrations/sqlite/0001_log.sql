-- The log: every change, in order, with what it wrote.
CREATE TABLE changes (
    revision   INTEGER PRIMARY KEY,
    at         TEXT    NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT,
    request_id TEXT,
    -- How many documents there are after this change. Whoever loads the picture counts and compares.
    documents  INTEGER NOT NULL
) STRICT;

CREATE TABLE writes (
    revision INTEGER NOT NULL REFERENCES changes (revision) DEFERRABLE INITIALLY DEFERRED,
    -- The place within the change.
    position INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire', 'remove')),
    body     TEXT    CHECK ((op = 'put') = (body IS NOT NULL)),
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
    state    TEXT    NOT NULL CHECK (state IN ('live', 'retired')),
    body     TEXT    NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;
