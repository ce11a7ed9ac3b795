-- reserve takes units of one item for a batch of requests.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded commodity price {token user quantity}...
-- Reply {remaining, epoch, version, now, ledger id, codes joined by ' ', live tokens of each DUPLICATE...}; the codes:
--    1 RESERVED     the units are the token's now
--    2 AGAIN        the token had them already (or stands twice in this batch): nothing is taken
--    0 SOLD_OUT     fewer remain than asked for; others of the batch that ask for less may still win
--   -1 UNOPENED     no meta, or the item has no stock
--   -2 DUPLICATE    the user's limit is reached
--   -3 NOT_STARTED, -4 ENDED   by Redis's clock, or ended by the operator
--   -5 UNPROVEN     another server than the proven one, recovering, or not live
--   -7 REUSED       the token stands for another item, quantity or user
-- Invariant: remaining falls by exactly the quantities of the records that are added, never below 0.
-- The caller asks again with the same tokens where it got no answer, and never gives back. A batch costs one HMGET, one
-- HINCRBY, one HSET a hash, one ZADD and one XADD, whatever its size.
local embedded, commodity, price = ARGV[1], ARGV[2], ARGV[3]
local n = (#ARGV - 3) / 3
local now = now_ms()
local m = read_meta()

local function reply(remaining, id, codes, live)
  return { remaining, m.epoch or '0', m.version or '0', now, id, codes, unpack(live) }
end

local refusal = refused(m, embedded)
if not refusal and (m.recovering or (m.status ~= 'live' and m.status ~= 'ended')) then refusal = UNPROVEN end
if refusal then return reply(0, '', all(n, refusal), {}) end

local tokens, fields = {}, {}
for i = 1, n do
  tokens[i] = ARGV[3 * i + 1]
  fields[i] = ARGV[3 * i + 2] .. ':' .. commodity
end
local known = redis.call('HMGET', res, unpack(tokens))
local held = redis.call('HMGET', buyers, unpack(fields))
local remaining = tonumber(redis.call('HGET', stock, commodity) or '')

if now < m.starts_at then refusal = NOT_STARTED
elseif now >= m.ends_at or m.status == 'ended' then refusal = ENDED
elseif not remaining then refusal = UNOPENED end

local codes, live, taken, at = {}, {}, 0, text(now)
local slots_of, touched, records, winners, users, fresh = {}, {}, {}, {}, {}, {}

-- Whether the token's record asks for what this request asks for.
local function same(record, user, quantity)
  local u, c, q = string.match(record, '^%a|(%d+)|(%d+)|(%d+)|')
  return u == user and c == commodity and q == quantity
end

local function decide(i, token, user, quantity)
  local record = known[i] or fresh[token]
  if record then return same(record, user, quantity) and AGAIN or REUSED end
  if refusal then return refusal end
  local field, wanted = fields[i], tonumber(quantity)
  local slots = slots_of[field] or split_slots(held[i])
  local free, tokens_held = free_for(slots, m.limit, wanted)
  if not free and tokens_held ~= '' then
    live[#live + 1] = tokens_held
    return DUPLICATE
  end
  if not free or wanted > remaining - taken then return SOLD_OUT end
  if not slots_of[field] then
    slots_of[field] = slots
    touched[#touched + 1] = field
  end
  record = new_record(user, commodity, quantity, price, take_slots(slots, wanted, token), at)
  fresh[token], taken = record, taken + wanted
  records[#records + 1] = token
  records[#records + 1] = record
  winners[#winners + 1] = token
  users[#users + 1] = user .. ':' .. quantity
  return RESERVED
end

for i = 1, n do codes[i] = decide(i, tokens[i], ARGV[3 * i + 2], ARGV[3 * i + 3]) end
codes = join_codes(codes)
if taken == 0 then
  local newest = redis.call('XREVRANGE', ledger, '+', '-', 'COUNT', 1)
  return reply(remaining or 0, newest[1] and newest[1][1] or '', codes, live)
end

remaining = move_stock(m, commodity, -taken)
write_slots(touched, slots_of)
redis.call('HSET', res, unpack(records))
local member = table.concat(winners, ',')
redis.call('ZADD', pending, text(now + FIRST_LOOK), member)
local id = log('reserve', now, 'item', commodity, 'tokens', member, 'users', table.concat(users, ','), 'why', 'bought')
if not m.dated then date_keys(m.expires_at) end
return reply(remaining, id, codes, live)
