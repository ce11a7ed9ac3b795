-- pause makes reserve refuse; claim, commit, release and closing go on.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded
-- Reply:
--    1 RESERVED    paused now
--    2 AGAIN       not live, so there was nothing to pause
--   -1 UNOPENED    no meta
-- Invariant: nothing but the status changes; an ended activity stays ended.
-- The caller has written the status into the database before: a recovery writes that one back.
local m = read_meta()
if not m.epoch then return UNOPENED end
if m.status ~= 'live' then return AGAIN end
redis.call('HSET', meta, 'status', 'paused')
log('pause', now_ms(), 'why', 'operator')
return RESERVED
