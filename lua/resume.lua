-- resume lets reserve go on after pause.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded
-- Reply:
--    1 RESERVED    live now
--    2 AGAIN       not paused, so there was nothing to resume
--   -1 UNOPENED    no meta
-- Invariant: nothing but the status changes; neither `recovering` nor a foreign identity is lifted.
-- The caller has written the status into the database before: a recovery writes that one back.
local m = read_meta()
if not m.epoch then return UNOPENED end
if m.status ~= 'paused' then return AGAIN end
redis.call('HSET', meta, 'status', 'live')
log('resume', now_ms(), 'why', 'operator')
return RESERVED
