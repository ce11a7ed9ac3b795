-- +goose Up
-- Times are epoch milliseconds. Texts compare byte by byte. Every unique key of orders and slots lies inside one user's
-- shard: a user's rows can be moved to another server with their keys. IF NOT EXISTS: MySQL commits each statement by
-- itself, so a migration that died half way is simply run again.
CREATE TABLE IF NOT EXISTS activities (
    id             BIGINT       NOT NULL PRIMARY KEY,
    title          VARCHAR(200) NOT NULL,
    starts_at      BIGINT       NOT NULL,
    ends_at        BIGINT       NOT NULL,
    per_user_limit INT          NOT NULL,
    pay_window_ms  BIGINT       NOT NULL,
    captcha        TINYINT(1)   NOT NULL,
    status         VARCHAR(16)  NOT NULL,
    created_at     BIGINT       NOT NULL,
    updated_at     BIGINT       NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- sold counts the units of live orders (pending or paid); sold <= total - fallback_left is what no statement may break.
CREATE TABLE IF NOT EXISTS items (
    activity_id    BIGINT       NOT NULL,
    commodity_id   BIGINT       NOT NULL,
    position       INT          NOT NULL,
    title          VARCHAR(200) NOT NULL,
    price_cents    BIGINT       NOT NULL,
    total          BIGINT       NOT NULL,
    sold           BIGINT       NOT NULL,
    fallback_quota BIGINT       NOT NULL,
    fallback_left  BIGINT       NOT NULL,
    epoch          BIGINT       NOT NULL,
    live_epoch     BIGINT       NOT NULL,
    PRIMARY KEY (activity_id, commodity_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lots (
    operation    VARCHAR(64) NOT NULL PRIMARY KEY,
    activity_id  BIGINT      NOT NULL,
    commodity_id BIGINT      NOT NULL,
    units        BIGINT      NOT NULL,
    epoch        BIGINT      NOT NULL,
    applied      TINYINT(1)  NOT NULL,
    created_at   BIGINT      NOT NULL,
    KEY lots_by_activity (activity_id, applied)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS orders (
    order_no      BIGINT       NOT NULL PRIMARY KEY,
    request_token CHAR(59)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    user_id       BIGINT       NOT NULL,
    activity_id   BIGINT       NOT NULL,
    commodity_id  BIGINT       NOT NULL,
    title         VARCHAR(200) NOT NULL,
    quantity      INT          NOT NULL,
    price_cents   BIGINT       NOT NULL,
    state         TINYINT      NOT NULL,
    source        TINYINT      NOT NULL,
    reason        VARCHAR(32)  NOT NULL,
    slots         VARCHAR(400) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at    BIGINT       NOT NULL,
    pay_by        BIGINT       NOT NULL,
    updated_at    BIGINT       NOT NULL,
    announced     TINYINT(1)   NOT NULL,
    UNIQUE KEY orders_token (user_id, request_token),
    KEY orders_by_user (user_id, order_no),
    KEY orders_by_activity (activity_id, order_no),
    KEY orders_unannounced (announced, updated_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row for each unit that a live order holds of its user's limit; deleted when the order stops being live.
CREATE TABLE IF NOT EXISTS slots (
    user_id      BIGINT NOT NULL,
    activity_id  BIGINT NOT NULL,
    commodity_id BIGINT NOT NULL,
    slot         INT    NOT NULL,
    order_no     BIGINT NOT NULL,
    PRIMARY KEY (user_id, activity_id, commodity_id, slot)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS placed (
    topic       VARCHAR(127) NOT NULL,
    queue       VARCHAR(127) NOT NULL,
    next_offset BIGINT       NOT NULL,
    PRIMARY KEY (topic, queue)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS leases (
    name       VARCHAR(127) NOT NULL PRIMARY KEY,
    owner      VARCHAR(127) NOT NULL,
    expires_at BIGINT       NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS operations (
    id          BIGINT       NOT NULL PRIMARY KEY AUTO_INCREMENT,
    at          BIGINT       NOT NULL,
    who         VARCHAR(127) NOT NULL,
    action      VARCHAR(64)  NOT NULL,
    activity_id BIGINT       NOT NULL,
    before_text TEXT         NOT NULL,
    after_text  TEXT         NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS operations;
DROP TABLE IF EXISTS leases;
DROP TABLE IF EXISTS placed;
DROP TABLE IF EXISTS slots;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS lots;
DROP TABLE IF EXISTS items;
DROP TABLE IF EXISTS activities;
