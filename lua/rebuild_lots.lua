-- rebuild_lots notes added lots that the stock to be written counts, while a recovery builds.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded epoch {operation}...
-- Reply:
--    1 RESERVED    noted
--   -6 STALE       another epoch is being built, or this one is built already
-- Invariant: a lot that a rebuild counts is never added again, also where it was counted in the database under this very
-- epoch: restock finds its note.
-- The caller has read the lots and the totals as of one moment, and writes the stock next.
local m = read_meta()
if m.building ~= ARGV[2] or m.epoch == ARGV[2] then return STALE end
for i = 3, #ARGV do redis.call('HSET', meta, 'op:' .. ARGV[i], 'counted') end
return RESERVED
