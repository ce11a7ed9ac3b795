-- claim tells a worker how to go on with a batch of messages or due reservations before it writes rows.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded {token user commodity quantity price}...
-- Reply {epoch, codes joined by ' ', one record each ('' where there is none)}; the codes:
--    1 RESERVED    occupied: sell it, the record says what
--    2 AGAIN       unknown, and adopted: Redis had lost it, unit and slots are taken now, sell it
--    3 SETTLED     committed or released: its row decides
--    0 SOLD_OUT    unknown, and no unit is left: a failed row
--   -2 DUPLICATE   unknown, and the user's limit is reached: a failed row
--   -1 UNOPENED    no meta, or the item has no stock: its row decides
--   -5 UNPROVEN    another server than the proven one: wait
-- Invariant: remaining falls by exactly the quantities adopted. It works while recovering, paused, ended and after the
-- window, since what was promised must be placed. Adopted tokens are due again after FIRST_LOOK and their hold starts now.
-- The caller fences its transaction by the epoch in the reply.
local embedded = ARGV[1]
local n = (#ARGV - 1) / 5
local m = read_meta()
local refusal = refused(m, embedded)
if refusal then return { m.epoch or '0', all(n, refusal) } end

local now = now_ms()
local tokens = {}
for i = 1, n do tokens[i] = ARGV[5 * i - 3] end
local known = redis.call('HMGET', res, unpack(tokens))
local left, slots_of, touched, fresh, records, members = {}, {}, {}, {}, {}, {}

-- Unknown tokens are rare (after a loss), so their stock and slots are read one by one.
local function adopt(token, user, commodity, quantity, price)
  local field, wanted = user .. ':' .. commodity, tonumber(quantity)
  if not left[commodity] then left[commodity] = tonumber(redis.call('HGET', stock, commodity) or '') end
  if not left[commodity] then return UNOPENED end
  local slots = slots_of[field] or split_slots(redis.call('HGET', buyers, field))
  local free, tokens_held = free_for(slots, m.limit, wanted)
  if not free and tokens_held ~= '' then return DUPLICATE end
  if not free or wanted > left[commodity] then return SOLD_OUT end
  if not slots_of[field] then
    slots_of[field] = slots
    touched[#touched + 1] = field
  end
  left[commodity] = move_stock(m, commodity, -wanted)
  fresh[token] = new_record(user, commodity, quantity, price, take_slots(slots, wanted, token), text(now))
  records[#records + 1] = token
  records[#records + 1] = fresh[token]
  members[#members + 1] = token
  return AGAIN
end

local codes, reply = {}, { m.epoch, '' }
for i = 1, n do
  local token, a = tokens[i], 5 * i - 3
  local record = known[i] or fresh[token]
  if record then codes[i] = string.sub(record, 1, 1) == 'O' and RESERVED or SETTLED
  else codes[i] = adopt(token, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]) end
  reply[i + 2] = record or fresh[token] or ''
end
reply[2] = join_codes(codes)
if #members > 0 then
  local member = table.concat(members, ',')
  write_slots(touched, slots_of)
  redis.call('HSET', res, unpack(records))
  redis.call('ZADD', pending, text(now + FIRST_LOOK), member)
  log('adopt', now, 'tokens', member, 'why', 'claimed')
  if not m.dated then date_keys(m.expires_at) end
end
return reply
