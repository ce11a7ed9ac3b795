-- rebuild_live ends a recovery: reserve works again, unless the operator paused or ended the activity.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded epoch
-- Reply:
--    1 RESERVED    live now; every item's remaining is published
--    2 AGAIN       was live already
--   -5 UNPROVEN    the server has changed since rebuild_end: start over
--   -6 STALE       another epoch, or the data is lost: somebody else recovers, or start over
-- Invariant: stock does not move.
-- The caller has drained the queue and recorded the epoch as live in the database.
local embedded, epoch = ARGV[1], ARGV[2]
local m = read_meta()
if m.epoch ~= epoch then return STALE end
if not proven(m, embedded) then return UNPROVEN end
if not m.recovering then return AGAIN end
redis.call('HSET', meta, 'recovering', '0')
next_version(m)
local items = redis.call('HGETALL', stock)
for i = 1, #items, 2 do publish_stock(m, items[i], tonumber(items[i + 1])) end
log('rebuild_live', now_ms(), 'epoch', epoch, 'why', 'recovery')
return RESERVED
