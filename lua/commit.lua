-- commit writes the outcome of live orders (pending_payment, paid) into their reservations and publishes it.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded {token tail json}...   tail is orderNo|outcome|reason|payBy|settledAt, json the outcome to publish
-- Reply: codes joined by ' ':
--    1 RESERVED    was occupied: committed now
--    2 AGAIN       was committed: outcome written again; a paid one never goes back to pending_payment
--    4 UNKNOWN     released or not here: nothing is written, a released unit is not taken back
--   -1 UNOPENED    no meta: nothing is written
--   -5 UNPROVEN    another server than the proven one: nothing is written or published, the sweep comes again
-- Invariant: no stock and no slot moves. All outcomes but those of unproven and of outdated ones go out in one PUBLISH.
-- The caller has committed the rows before, and marks them announced after it has seen any code but UNPROVEN.
local embedded = ARGV[1]
local n = (#ARGV - 1) / 3
local m = read_meta()
local refusal = refused(m, embedded)
if refusal == UNPROVEN then return all(n, UNPROVEN) end

local tokens = {}
for i = 1, n do tokens[i] = ARGV[3 * i - 1] end
local known = refusal and {} or redis.call('HMGET', res, unpack(tokens))
local now_known, codes, records, done, why, news = {}, {}, {}, {}, {}, {}

-- A pending_payment that comes after paid was read from its row before the payment: it is old news.
local function outdated(record, outcome)
  return outcome == 'pending_payment' and outcome_of(open_record(record).tail) == 'paid'
end

local function settle(token, record, tail, json)
  local state = record and string.sub(record, 1, 1) or 'R'
  local outcome = outcome_of(tail)
  if state == 'C' and outdated(record, outcome) then return AGAIN end
  news[#news + 1] = json
  if state == 'R' then return refusal or UNKNOWN end
  now_known[token] = settle_record('C', record, tail)
  records[#records + 1] = token
  records[#records + 1] = now_known[token]
  done[#done + 1] = token
  why[#why + 1] = outcome
  return state == 'O' and RESERVED or AGAIN
end

for i = 1, n do
  codes[i] = settle(tokens[i], now_known[tokens[i]] or known[i], ARGV[3 * i], ARGV[3 * i + 1])
end
if #done > 0 then
  redis.call('HSET', res, unpack(records))
  log('commit', now_ms(), 'tokens', table.concat(done, ','), 'why', table.concat(why, ','))
end
if #news > 0 then redis.call('PUBLISH', OUTCOME_CHANNEL, '[' .. table.concat(news, ',') .. ']') end
return join_codes(codes)
