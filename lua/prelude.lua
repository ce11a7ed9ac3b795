-- prelude.lua stands before every script, behind the constants that script.go writes (codes, times, channels).
-- It names the six keys of a cell, tells whether this server is the one that the stock was proven on, and is the only
-- place that knows how meta, a packed record and a buyer's slots are written.
--
-- Numbers become text by text() alone: joined with `..` they turn into 1e+14 on Redis. Ids are never numbers here.
local meta, stock, buyers, res, pending, ledger = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local function text(n) return string.format('%.0f', n) end

-- Redis's clock in epoch milliseconds: the one clock of the ledger.
local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

local function read_meta()
  local v = redis.call('HMGET', meta, 'epoch', 'version', 'run_id', 'replid', 'building', 'recovering', 'status',
    'starts_at', 'ends_at', 'limit', 'hold_ms', 'expires_at', 'dated')
  return { epoch = v[1], version = v[2], run_id = v[3], replid = v[4], building = v[5], recovering = v[6] == '1',
    status = v[7], starts_at = tonumber(v[8] or 0), ends_at = tonumber(v[9] or 0), limit = tonumber(v[10] or 0),
    hold_ms = tonumber(v[11] or HOLD), expires_at = v[12], dated = v[13] == '1' }
end

-- This server's run id and replication id; nothing where INFO is refused. The run id alone is not enough: a master that
-- resynced from its own replica and was promoted again is the same process with other data.
local function identity(embedded)
  if embedded == '1' then return 'embedded', 'embedded' end
  local info = redis.pcall('INFO', 'server', 'replication')
  if type(info) ~= 'string' then return nil end
  return string.match(info, 'run_id:(%x+)'), string.match(info, 'master_replid:(%x+)')
end

local function proven(m, embedded)
  local run_id, replid = identity(embedded)
  return run_id and replid and run_id == m.run_id and replid == m.replid
end

-- Why no stock may move now: UNOPENED, UNPROVEN or nil. A half-built meta of a recovery is unproven, not unopened:
-- who hears unopened believes that the activity is gone.
local function refused(m, embedded)
  if not m.epoch then return m.building and UNPROVEN or UNOPENED end
  if not proven(m, embedded) then return UNPROVEN end
end

-- Codes joined; `..` since miniredis's table.concat of one number is that number.
local function join_codes(codes) return table.concat(codes, ' ') .. '' end
-- A list of n times the same code, joined.
local function all(n, code) return string.rep(code .. ' ', n - 1) .. code end

-- Writes status, window, limit, expiry and catalog from the six arguments that begin at ARGV[first].
local function write_activity(first)
  redis.call('HSET', meta, 'status', ARGV[first], 'starts_at', ARGV[first + 1], 'ends_at', ARGV[first + 2],
    'limit', ARGV[first + 3], 'expires_at', ARGV[first + 4], 'catalog', ARGV[first + 5])
end

-- Makes every key that exists expire with the activity. `dated` in meta notes that all six have been, so that a reserve
-- pays nothing for it; undate() takes the note back where a key may have vanished, since it would come back without a date.
local function date_keys(expires_at)
  if not expires_at then return end
  local dated = 0
  for i = 1, 6 do dated = dated + redis.call('PEXPIREAT', KEYS[i], expires_at) end
  if dated == 6 then redis.call('HSET', meta, 'dated', '1') end
end
local function undate()
  if redis.call('EXISTS', buyers, res, pending) < 3 then redis.call('HDEL', meta, 'dated') end
end

-- One transition in the stream. MAXLEN with ~ drops whole nodes only, which costs nothing.
local function log(op, now, ...)
  return redis.call('XADD', ledger, 'MAXLEN', '~', LEDGER_CAP, '*', 'op', op, 'at', text(now), ...)
end

local function publish_stock(m, commodity, remaining)
  local activity, cell = string.match(meta, '{(%d+)%.(%d+)}')
  redis.call('PUBLISH', STOCK_CHANNEL, '{"activity":"' .. activity .. '","cell":' .. cell .. ',"commodity":"' .. commodity ..
    '","epoch":' .. m.epoch .. ',"version":' .. m.version .. ',"remaining":' .. text(remaining) .. '}')
end
local function next_version(m) m.version = text(redis.call('HINCRBY', meta, 'version', 1)) end

-- Adds n (negative: takes) to an item's remaining, and tells the edges where it reaches or leaves 0.
local function move_stock(m, commodity, n)
  local remaining = redis.call('HINCRBY', stock, commodity, text(n))
  if remaining == 0 or remaining == n then
    next_version(m)
    publish_stock(m, commodity, remaining)
  end
  return remaining
end

-- A buyer's slots: tokens by slot, '' where free, as long as its last held slot.
local function split_slots(value)
  local slots = {}
  if value then
    for token in string.gmatch(value .. ',', '([^,]*),') do slots[#slots + 1] = token end
  end
  return slots
end

-- Whether a buyer may have so many units more; if not, also the tokens that hold the slots.
local function free_for(slots, limit, quantity)
  if #slots == 0 then return quantity <= limit, '' end
  local held, live, seen = 0, {}, {}
  for i = 1, #slots do
    local token = slots[i]
    if token ~= '' then
      held = held + 1
      if not seen[token] then
        seen[token] = true
        live[#live + 1] = token
      end
    end
  end
  if held + quantity <= limit then return true end
  return false, table.concat(live, ',')
end

-- Takes the lowest free slots for a token and returns them as a record has them, 0-based.
local function take_slots(slots, quantity, token)
  if #slots == 0 and quantity == 1 then -- nearly all: spares a table for each
    slots[1] = token
    return '0'
  end
  local taken, i = {}, 0
  while #taken < quantity do
    i = i + 1
    if (slots[i] or '') == '' then
      slots[i] = token
      taken[#taken + 1] = text(i - 1)
    end
  end
  return table.concat(taken, ',')
end

-- Frees the slots that the token holds, whatever the record says.
local function free_slots(slots, token)
  for i = 1, #slots do
    if slots[i] == token then slots[i] = '' end
  end
  while slots[#slots] == '' do slots[#slots] = nil end
end

-- Writes the slots of buyers: fields lists the touched ones, slots_of has their slots. Who holds nothing leaves.
local function write_slots(fields, slots_of)
  local set, del = {}, {}
  for i = 1, #fields do
    local slots = slots_of[fields[i]]
    if #slots == 0 then del[#del + 1] = fields[i]
    else set[#set + 1] = fields[i]; set[#set + 1] = table.concat(slots, ',') end
  end
  if #set > 0 then redis.call('HSET', buyers, unpack(set)) end
  if #del > 0 then redis.call('HDEL', buyers, unpack(del)) end
end

-- The packed record: state|user|commodity|qty|price|slots|reservedAt|orderNo|outcome|reason|payBy|settledAt. What is
-- behind reservedAt is its tail, which commit and release replace whole.
local function new_record(user, commodity, quantity, price, slots, now)
  return 'O|' .. user .. '|' .. commodity .. '|' .. quantity .. '|' .. price .. '|' .. slots .. '|' .. now .. '|0|accepted||0|0'
end
local function open_record(record)
  local state, user, commodity, quantity, price, slots, at, tail =
    string.match(record, '^(%a)|(%d+)|(%d+)|(%d+)|(%d+)|([%d,]*)|(%d+)|(.*)$')
  return { state = state, user = user, commodity = commodity, quantity = tonumber(quantity), price = price,
    slots = slots, at = tonumber(at), tail = tail }
end
local function settle_record(state, record, tail)
  return state .. string.match(record, '^%a(|%d+|%d+|%d+|%d+|[%d,]*|%d+|)') .. tail
end
local function outcome_of(tail) return string.match(tail, '^%d+|([%w_]*)|([%w_]*)|') end

-- A member of pending that begins with this stands for released records that `due` is to forget; others for a batch.
local FORGETS = '!'
