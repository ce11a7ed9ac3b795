-- open loads the stock of an activity once and makes this server the proven one.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded epoch status starts_at ends_at limit expires_at catalog {commodity remaining}...
-- Reply:
--    1 RESERVED    opened now
--    2 AGAIN       this epoch was open already: nothing is written
--   -5 UNPROVEN    the server does not tell its identity
--   -6 STALE       another epoch, a recovery in between, or remains without meta: only a recovery may go on
-- Invariant: live stock is never overwritten.
-- The caller adds the activity to the set of activities after RESERVED and after AGAIN.
local embedded, epoch = ARGV[1], ARGV[2]
local m = read_meta()
if m.epoch then return m.epoch == epoch and AGAIN or STALE end
if m.building or redis.call('EXISTS', stock, buyers, res, pending) > 0 then return STALE end
local run_id, replid = identity(embedded)
if not run_id or not replid then return UNPROVEN end

write_activity(3)
redis.call('HSET', meta, 'epoch', epoch, 'version', '0', 'run_id', run_id, 'replid', replid, 'recovering', '0', 'hold_ms', HOLD)
redis.call('HSET', stock, unpack(ARGV, 9))
log('open', now_ms(), 'epoch', epoch, 'stock', table.concat(ARGV, ',', 9), 'why', 'opened')
date_keys(ARGV[7])
return RESERVED
