-- +goose Up
-- Messages taken off their queue while their activity's stock is not proven, so that other activities' messages go on.
CREATE TABLE IF NOT EXISTS shelf (
    user_id       BIGINT   NOT NULL,
    request_token CHAR(59) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    activity_id   BIGINT   NOT NULL,
    body          BLOB     NOT NULL,
    PRIMARY KEY (user_id, request_token),
    KEY shelf_by_activity (activity_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS shelf;
