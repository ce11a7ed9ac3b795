-- rebuild_begin starts to write a cell anew under a newer epoch.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded epoch
-- Reply:
--    1 RESERVED    begun: identity cleared; buyers, stock and pending dropped, since they follow from the reservations
--   -6 STALE       this epoch, or a newer one, is being built or stands already
-- Invariant: of two recoverers only the one with the newer epoch goes on writing; res stays.
-- The caller takes the epoch from the database, and sends all pages and rebuild_end under the same epoch.
local epoch = ARGV[2]
local m = read_meta()
if tonumber(epoch) <= math.max(tonumber(m.building or -1), tonumber(m.epoch or -1)) then return STALE end
redis.call('HSET', meta, 'building', epoch)
redis.call('HDEL', meta, 'run_id', 'replid', 'dated')
redis.call('UNLINK', buyers, stock, pending)
log('rebuild_begin', now_ms(), 'epoch', epoch, 'why', 'recovery')
return RESERVED
