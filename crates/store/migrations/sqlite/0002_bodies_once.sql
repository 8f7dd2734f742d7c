-- A body is kept once: with the write that made it. What the picture at the head of the log is made of is said by numbers of
-- writes, so that a change of a document writes its body once, and the picture is some kilobytes.
CREATE TABLE fleet_writes_numbered (
    -- Its own, unlike a rowid, which a VACUUM may change.
    number   INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    -- The place within the change.
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

-- The picture at the head of the log, so that a start reads what is and not all that was.
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

-- What is current comes first, and its writes are looked up: never the other way round, which would be all that ever was.
CREATE VIEW fleet_documents AS
SELECT c.kind, c.id, w.revision, w.op, w.body, w.checksum FROM fleet_current c
CROSS JOIN fleet_writes w ON w.number = c.write AND w.kind = c.kind AND w.id = c.id;
