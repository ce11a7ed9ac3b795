-- rebuild_end writes stock and meta and makes this server the proven one: claims work from here, reserve does not yet.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded epoch status starts_at ends_at limit expires_at catalog {commodity remaining}...
-- Reply:
--    1 RESERVED    written, recovering
--    2 AGAIN       this epoch was written already, perhaps changed by claims since: nothing is written
--   -5 UNPROVEN    the server does not tell its identity
--   -6 STALE       another epoch is being built
-- Invariant: stock, reservations and identity are of one epoch; versions go on rising.
-- The caller drains the queue next, records the epoch as live in the database and calls rebuild_live.
local embedded, epoch = ARGV[1], ARGV[2]
local m = read_meta()
if m.building ~= epoch then return STALE end
if m.epoch == epoch then return AGAIN end
local run_id, replid = identity(embedded)
if not run_id or not replid then return UNPROVEN end

write_activity(3)
next_version(m)
redis.call('HSET', meta, 'epoch', epoch, 'run_id', run_id, 'replid', replid, 'recovering', '1', 'hold_ms', HOLD)
redis.call('DEL', stock)
redis.call('HSET', stock, unpack(ARGV, 9))
log('rebuild_end', now_ms(), 'epoch', epoch, 'stock', table.concat(ARGV, ',', 9), 'why', 'recovery')
date_keys(ARGV[7])
return RESERVED
