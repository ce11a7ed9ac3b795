-- due hands out the reservations that somebody must look at, and tidies what needs no look any more.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded limit
-- Reply {code, {token, record, ...} to place, {token, record, ...} whose hold has passed}; the codes:
--    1 RESERVED    as listed, perhaps nothing
--   -1 UNOPENED    no meta
--   -5 UNPROVEN    another server than the proven one: nothing is handed out
-- Invariant: an occupied token is a part of some member of pending, always. At most limit members are looked at: their
-- settled tokens are dropped, and where occupied ones remain the member is due again after FIRST_LOOK, so that any number
-- of sweepers may run. Released records that are due to be forgotten leave res.
-- The caller places what it got, or writes the tombstones, and owes nothing for the rest.
local embedded, limit = ARGV[1], ARGV[2]
local m = read_meta()
local refusal = refused(m, embedded)
if refusal then return { refusal, {}, {} } end

local now = now_ms()
local members = redis.call('ZRANGEBYSCORE', pending, '-inf', text(now), 'LIMIT', 0, limit)
if #members == 0 then return { RESERVED, {}, {} } end
local to_place, held_too_long, gone = {}, {}, false

local function forget(member)
  local tokens, drop = split_slots(string.sub(member, 2)), {}
  local records = redis.call('HMGET', res, unpack(tokens))
  for i = 1, #tokens do
    if records[i] and string.sub(records[i], 1, 1) == 'R' then drop[#drop + 1] = tokens[i] end
  end
  if #drop > 0 then redis.call('HDEL', res, unpack(drop)) end
  redis.call('ZREM', pending, member)
  gone = true
end

local function hand_out(member)
  local tokens, rest = split_slots(member), {}
  local records = redis.call('HMGET', res, unpack(tokens))
  for i = 1, #tokens do
    if records[i] and string.sub(records[i], 1, 1) == 'O' then
      local list = now >= open_record(records[i]).at + m.hold_ms and held_too_long or to_place
      list[#list + 1] = tokens[i]
      list[#list + 1] = records[i]
      rest[#rest + 1] = tokens[i]
    end
  end
  local left = table.concat(rest, ',')
  if left ~= member then
    redis.call('ZREM', pending, member)
    gone = true
  end
  if left ~= '' then redis.call('ZADD', pending, text(now + FIRST_LOOK), left) end
end

for i = 1, #members do
  if string.sub(members[i], 1, 1) == FORGETS then forget(members[i]) else hand_out(members[i]) end
end
if not m.dated then date_keys(m.expires_at) elseif gone then undate() end
return { RESERVED, to_place, held_too_long }
