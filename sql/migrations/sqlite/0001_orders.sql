-- +goose Up
-- The same tables as mysql/0001_orders.sql. Times are epoch milliseconds; SQLite compares texts byte by byte by itself.
CREATE TABLE activities (
    id             INTEGER NOT NULL PRIMARY KEY,
    title          TEXT    NOT NULL,
    starts_at      INTEGER NOT NULL,
    ends_at        INTEGER NOT NULL,
    per_user_limit INTEGER NOT NULL,
    pay_window_ms  INTEGER NOT NULL,
    captcha        INTEGER NOT NULL,
    status         TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;

-- sold counts the units of live orders (pending or paid); sold <= total - fallback_left is what no statement may break.
CREATE TABLE items (
    activity_id    INTEGER NOT NULL,
    commodity_id   INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    title          TEXT    NOT NULL,
    price_cents    INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    sold           INTEGER NOT NULL,
    fallback_quota INTEGER NOT NULL,
    fallback_left  INTEGER NOT NULL,
    epoch          INTEGER NOT NULL,
    live_epoch     INTEGER NOT NULL,
    PRIMARY KEY (activity_id, commodity_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE lots (
    operation    TEXT    NOT NULL PRIMARY KEY,
    activity_id  INTEGER NOT NULL,
    commodity_id INTEGER NOT NULL,
    units        INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    applied      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX lots_by_activity ON lots (activity_id, applied);

CREATE TABLE orders (
    order_no      INTEGER NOT NULL PRIMARY KEY,
    request_token TEXT    NOT NULL,
    user_id       INTEGER NOT NULL,
    activity_id   INTEGER NOT NULL,
    commodity_id  INTEGER NOT NULL,
    title         TEXT    NOT NULL,
    quantity      INTEGER NOT NULL,
    price_cents   INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    source        INTEGER NOT NULL,
    reason        TEXT    NOT NULL,
    slots         TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    pay_by        INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    announced     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX orders_token ON orders (user_id, request_token);
CREATE INDEX orders_by_user ON orders (user_id, order_no);
CREATE INDEX orders_by_activity ON orders (activity_id, order_no);
CREATE INDEX orders_unannounced ON orders (announced, updated_at);

-- One row for each unit that a live order holds of its user's limit; deleted when the order stops being live.
CREATE TABLE slots (
    user_id      INTEGER NOT NULL,
    activity_id  INTEGER NOT NULL,
    commodity_id INTEGER NOT NULL,
    slot         INTEGER NOT NULL,
    order_no     INTEGER NOT NULL,
    PRIMARY KEY (user_id, activity_id, commodity_id, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE placed (
    topic       TEXT    NOT NULL,
    queue       TEXT    NOT NULL,
    next_offset INTEGER NOT NULL,
    PRIMARY KEY (topic, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    name       TEXT    NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
    id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    who         TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    activity_id INTEGER NOT NULL,
    before_text TEXT    NOT NULL,
    after_text  TEXT    NOT NULL
) STRICT;

-- +goose Down
DROP TABLE operations;
DROP TABLE leases;
DROP TABLE placed;
DROP TABLE slots;
DROP TABLE orders;
DROP TABLE lots;
DROP TABLE items;
DROP TABLE activities;
