-- enqueued moves the next look at batches whose tokens the queue has all acknowledged.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded {member}...
-- Reply: the number of members, found or not.
-- Invariant: no member appears or leaves; one that is gone or was rewritten by `due` stays as it is.
-- The caller names a member only when the queue has acknowledged every token of it, and owes nothing more.
local n, look = #ARGV - 1, text(now_ms() + QUEUED_LOOK)
local args = {}
for i = 1, n do
  args[2 * i - 1] = look
  args[2 * i] = ARGV[i + 1]
end
redis.call('ZADD', pending, 'XX', unpack(args))
return n
