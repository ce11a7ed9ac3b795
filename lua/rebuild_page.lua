-- rebuild_page writes a page of reservations while a recovery builds.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded epoch drops {token to drop}... {token record}...   drops is the number of tokens to drop
-- Reply:
--    1 RESERVED    written
--   -6 STALE       another epoch is being built, or this one is built already
-- Invariant: occupied and committed records hold their slots in buyers; occupied ones are in pending, due after
-- FIRST_LOOK; released ones are forgotten after FORGET. A page may be written twice.
-- The caller has read the records from the rows of the database under this epoch.
local epoch, drops = ARGV[2], tonumber(ARGV[3])
local m = read_meta()
if m.building ~= epoch or m.epoch == epoch then return STALE end

local function write_page(records)
  local slots_of, touched, occupied, released = {}, {}, {}, {}
  for i = 1, #records, 2 do
    local token, r = records[i], open_record(records[i + 1])
    local field = r.user .. ':' .. r.commodity
    if r.state == 'R' then released[#released + 1] = token
    else
      if r.state == 'O' then occupied[#occupied + 1] = token end
      if not slots_of[field] then
        slots_of[field] = split_slots(redis.call('HGET', buyers, field))
        touched[#touched + 1] = field
      end
      for slot in string.gmatch(r.slots, '%d+') do
        local at = tonumber(slot) + 1
        while #slots_of[field] < at do table.insert(slots_of[field], '') end
        slots_of[field][at] = token
      end
    end
  end
  local now = now_ms()
  redis.call('HSET', res, unpack(records))
  write_slots(touched, slots_of)
  if #occupied > 0 then redis.call('ZADD', pending, text(now + FIRST_LOOK), table.concat(occupied, ',')) end
  if #released > 0 then redis.call('ZADD', pending, text(now + FORGET), FORGETS .. table.concat(released, ',')) end
end

if drops > 0 then redis.call('HDEL', res, unpack(ARGV, 4, 3 + drops)) end
if #ARGV > 3 + drops then write_page({ unpack(ARGV, 4 + drops) }) end
return RESERVED
