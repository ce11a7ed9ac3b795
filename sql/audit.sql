-- The promises of Floodgate as far as the database alone can tell, for people with a SQL prompt (MySQL, MariaDB, SQLite).
-- Each query names what is wrong and returns no row where all is well. Promise 2 has a second half in Redis and in the queue:
-- `floodgate audit` puts all three side by side. Run them between BEGIN and COMMIT on a running sale (MySQL: under REPEATABLE
-- READ), or rows that are placed in the meantime look like damage.

-- Promise 1: never oversold. Live orders (pending 0, paid 1) hold at most the stock total, what the fallback keeps taken off.
SELECT i.activity_id, i.commodity_id, i.total, i.fallback_left, SUM(o.quantity) AS live_units
FROM items i
JOIN orders o ON o.activity_id = i.activity_id AND o.commodity_id = i.commodity_id AND o.state IN (0, 1)
GROUP BY i.activity_id, i.commodity_id, i.total, i.fallback_left
HAVING SUM(o.quantity) > i.total - i.fallback_left;

-- Promise 2, the database's half: the counter of the item's row is the sum of its live orders.
SELECT i.activity_id, i.commodity_id, i.sold, COALESCE(SUM(o.quantity), 0) AS live_units
FROM items i
LEFT JOIN orders o ON o.activity_id = i.activity_id AND o.commodity_id = i.commodity_id AND o.state IN (0, 1)
GROUP BY i.activity_id, i.commodity_id, i.sold
HAVING i.sold <> COALESCE(SUM(o.quantity), 0);

-- Promise 2: the fallback's quota is between 0 and what was set aside.
SELECT activity_id, commodity_id, fallback_quota, fallback_left
FROM items
WHERE fallback_left < 0 OR fallback_left > fallback_quota;

-- Promise 4: no user holds more units of an item than the activity's limit.
SELECT o.user_id, o.activity_id, o.commodity_id, SUM(o.quantity) AS units, a.per_user_limit
FROM orders o
JOIN activities a ON a.id = o.activity_id
WHERE o.state IN (0, 1)
GROUP BY o.user_id, o.activity_id, o.commodity_id, a.per_user_limit
HAVING SUM(o.quantity) > a.per_user_limit;

-- Promise 4: a live order holds one slot a unit, every other order none. (A slot's unique key is what keeps the limit.)
SELECT o.order_no, o.user_id, o.state, o.quantity, COUNT(s.slot) AS slots_held
FROM orders o
LEFT JOIN slots s ON s.user_id = o.user_id AND s.activity_id = o.activity_id AND s.commodity_id = o.commodity_id AND s.order_no = o.order_no
GROUP BY o.order_no, o.user_id, o.state, o.quantity
HAVING COUNT(s.slot) <> CASE WHEN o.state IN (0, 1) THEN o.quantity ELSE 0 END;

-- Promise 4: a slot that no order accounts for keeps its user from buying.
SELECT s.user_id, s.activity_id, s.commodity_id, s.slot, s.order_no
FROM slots s
LEFT JOIN orders o ON o.order_no = s.order_no
WHERE o.order_no IS NULL;
