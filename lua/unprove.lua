-- unprove clears the proven identity: from here no script moves stock until a recovery is done.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded
-- Reply: 1 RESERVED, also where nothing is there.
-- Invariant: stock and reservations stay as they are.
-- The caller goes on with a recovery, or another worker does: it is the first step of every one.
if redis.call('HDEL', meta, 'run_id', 'replid') > 0 then log('unprove', now_ms(), 'why', 'recovery') end
return RESERVED
