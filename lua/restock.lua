-- restock adds units of an item, once for each operation id.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded commodity n epoch operation
-- Reply:
--    1 RESERVED    added now
--    2 AGAIN       this operation was added before
--   -1 UNOPENED    no meta, or the item has no stock
--   -5 UNPROVEN    another server than the proven one
--   -6 STALE       another epoch: its rebuild has counted the lot
-- Invariant: remaining rises by n once an operation; the note `op:<operation>` in meta lives as long as the stock does.
-- The caller has written the lot under this epoch into the database, and marks it applied after 1 and 2; after STALE the rebuild of that
-- epoch, done or still to come, counts it.
local embedded, commodity, n, epoch, operation = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local m = read_meta()
local refusal = refused(m, embedded)
if refusal then return refusal end
if m.epoch ~= epoch then return STALE end
if redis.call('HEXISTS', meta, 'op:' .. operation) == 1 then return AGAIN end
if redis.call('HEXISTS', stock, commodity) == 0 then return UNOPENED end
redis.call('HSET', meta, 'op:' .. operation, n)
local remaining = redis.call('HINCRBY', stock, commodity, n)
next_version(m)
publish_stock(m, commodity, remaining)
log('restock', now_ms(), 'item', commodity, 'units', n, 'why', operation)
return RESERVED
