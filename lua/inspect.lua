-- inspect reads the state of a cell, for recovery, catalog, audit and doctor.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded
-- Reply {opened, proven, recovering (each 0 or 1), status, epoch, version, catalog, newest ledger id, now,
-- members of pending, records in res, {commodity, remaining, ...}, rebuilding (0 or 1)}
-- Invariant: nothing is written.
-- The caller takes it for one moment's truth. Opened means meta and stock: a lost stock key reads as not opened. Rebuilding
-- means that a recovery has dropped the stock of an older epoch and not written its own: whoever did may be dead.
local embedded = ARGV[1]
local m = read_meta()
local newest = redis.call('XREVRANGE', ledger, '+', '-', 'COUNT', 1)
local items = redis.call('HGETALL', stock)
return { m.epoch and #items > 0 and 1 or 0, m.epoch and proven(m, embedded) and 1 or 0, m.recovering and 1 or 0,
  m.status or '', m.epoch or '0', m.version or '0', redis.call('HGET', meta, 'catalog') or '',
  newest[1] and newest[1][1] or '', now_ms(), redis.call('ZCARD', pending), redis.call('HLEN', res), items,
  m.epoch and m.building and tonumber(m.building) > tonumber(m.epoch) and 1 or 0 }
