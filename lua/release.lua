-- release gives units and slots of orders back that hold nothing (failed, cancelled, closed), and publishes the outcome.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded {token tail json}...   tail is orderNo|outcome|reason|payBy|settledAt, json the outcome to publish
-- Reply: codes joined by ' ':
--    1 RESERVED    was occupied or committed: released now, units and slots are back
--    2 AGAIN       was released already: nothing is written
--    4 UNKNOWN     not here: nothing is written
--   -1 UNOPENED    no meta, or the item has no stock: nothing is written
--   -5 UNPROVEN    another server than the proven one: nothing is written or published, come again
-- Invariant: remaining rises by exactly the quantities of the records that turn released, each once. A released record
-- stays readable for FORGET and is dropped by `due` then. All outcomes but unproven ones go out in one PUBLISH.
-- The caller has written the row before: after a release the token can be taken anew by nobody but its own repeat.
local embedded = ARGV[1]
local n = (#ARGV - 1) / 3
local m = read_meta()
local refusal = refused(m, embedded)
if refusal == UNPROVEN then return all(n, UNPROVEN) end

local tokens = {}
for i = 1, n do tokens[i] = ARGV[3 * i - 1] end
local known = refusal and {} or redis.call('HMGET', res, unpack(tokens))
local codes, news, records, done, users, why, now_known = {}, {}, {}, {}, {}, {}, {}
local items, back, slots_of, touched = {}, {}, {}, {}

-- Units go back in sum, one item at a time; an item without stock (its key was lost) takes none until it is rebuilt.
local function give_back(r)
  if back[r.commodity] == nil then
    back[r.commodity] = redis.call('HEXISTS', stock, r.commodity) == 1 and 0
    if back[r.commodity] then items[#items + 1] = r.commodity end
  end
  if not back[r.commodity] then return false end
  back[r.commodity] = back[r.commodity] + r.quantity
  return true
end

local function leave_slots(r, token)
  local field = r.user .. ':' .. r.commodity
  if not slots_of[field] then
    slots_of[field] = split_slots(redis.call('HGET', buyers, field))
    touched[#touched + 1] = field
  end
  free_slots(slots_of[field], token)
end

local function settle(token, record, tail, json)
  news[#news + 1] = json
  if refusal or not record then return refusal or UNKNOWN end
  local r = open_record(record)
  if r.state == 'R' then return AGAIN end
  if not give_back(r) then return UNOPENED end
  leave_slots(r, token)
  now_known[token] = settle_record('R', record, tail)
  records[#records + 1] = token
  records[#records + 1] = now_known[token]
  done[#done + 1] = token
  users[#users + 1] = r.user .. ':' .. text(r.quantity)
  local outcome, reason = outcome_of(tail)
  why[#why + 1] = reason == '' and outcome or outcome .. ':' .. reason
  return RESERVED
end

for i = 1, n do
  codes[i] = settle(tokens[i], now_known[tokens[i]] or known[i], ARGV[3 * i], ARGV[3 * i + 1])
end
if #done > 0 then
  local now = now_ms()
  for i = 1, #items do move_stock(m, items[i], back[items[i]]) end
  write_slots(touched, slots_of)
  redis.call('HSET', res, unpack(records))
  redis.call('ZADD', pending, text(now + FORGET), FORGETS .. table.concat(done, ','))
  log('release', now, 'tokens', table.concat(done, ','), 'users', table.concat(users, ','), 'why', table.concat(why, ','))
  if m.dated then undate() else date_keys(m.expires_at) end
end
if #news > 0 then redis.call('PUBLISH', OUTCOME_CHANNEL, '[' .. table.concat(news, ',') .. ']') end
return join_codes(codes)
