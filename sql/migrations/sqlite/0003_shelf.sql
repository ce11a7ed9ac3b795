-- +goose Up
-- Messages taken off their queue while their activity's stock is not proven, so that other activities' messages go on.
CREATE TABLE shelf (
    user_id       INTEGER NOT NULL,
    request_token TEXT    NOT NULL,
    activity_id   INTEGER NOT NULL,
    body          BLOB    NOT NULL,
    PRIMARY KEY (user_id, request_token)
);
CREATE INDEX shelf_by_activity ON shelf (activity_id);

-- +goose Down
DROP TABLE shelf;
