-- +goose Up
-- The order queue of the embedded mode. AUTOINCREMENT never gives a number twice, so sqlite_sequence tells how far the queue
-- goes even when it is empty, and a recorded position stays true for good.
CREATE TABLE order_queue (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    body BLOB NOT NULL
);

CREATE TABLE dead_letters (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    body   BLOB NOT NULL,
    reason TEXT NOT NULL,
    at     INTEGER NOT NULL -- epoch milliseconds
);

-- +goose Down
DROP TABLE dead_letters;
DROP TABLE order_queue;
