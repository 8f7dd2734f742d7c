-- A body is stored once, with its write. The documents at the head are references to writes by number, so that a change of a
-- document writes its body only once.
CREATE TABLE fleet_writes_numbered (
    -- A key of its own, because a VACUUM may change a rowid.
    number   INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    -- The position within the change.
    position INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    op       TEXT    NOT NULL CHECK (op IN ('put', 'retire', 'remove')),
    body     TEXT    CHECK ((op = 'remove') = (body IS NULL)),
    checksum INTEGER NOT NULL,
    UNIQUE (revision, position)
) STRICT;
INSERT INTO fleet_writes_numbered (revision, position, kind, id, op, body, checksum)
SELECT revision, position, kind, id, op, body, checksum FROM fleet_writes ORDER BY revision, position;

-- The documents at the head of the log, so that a start does not read the whole log.
CREATE TABLE fleet_current (
    kind  TEXT    NOT NULL,
    id    TEXT    NOT NULL,
    write INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
INSERT INTO fleet_current (kind, id, write)
SELECT d.kind, d.id, w.number FROM fleet_documents d JOIN fleet_writes_numbered w
ON w.kind = d.kind AND w.id = d.id AND w.revision = d.revision AND w.body = d.body AND w.checksum = d.checksum;

DROP TABLE fleet_documents;
DROP TABLE fleet_writes;
ALTER TABLE fleet_writes_numbered RENAME TO fleet_writes;
-- A change writes a document at most once.
CREATE UNIQUE INDEX fleet_writes_of_document ON fleet_writes (kind, id, revision);

-- CROSS JOIN makes SQLite read the current documents first and look up their writes, and never scan all writes.
CREATE VIEW fleet_documents AS
SELECT c.kind, c.id, w.revision, w.op, w.body, w.checksum FROM fleet_current c
CROSS JOIN fleet_writes w ON w.number = c.write AND w.kind = c.kind AND w.id = c.id;
