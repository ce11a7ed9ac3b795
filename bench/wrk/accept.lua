-- Buyers with their own tokens, one purchase each, out of the file BUYERS ("JWT REQUESTTOKEN" a line). Every thread takes its share
-- of the lines; one that has used them up begins again, and a repeat is answered 202 again without taking anything: make the file
-- longer than the run.
local counter = 0

function setup(thread)
  thread:set("number", counter)
  counter = counter + 1
end

function init(args)
  local threads = tonumber(args[1])
  requests, at = {}, 0
  local n = 0
  for line in io.lines(os.getenv("BUYERS")) do
    if n % threads == number then
      local jwt, token = line:match("^(%S+) (%S+)$")
      requests[#requests + 1] = wrk.format("POST", nil,
        { ["Authorization"] = "Bearer " .. jwt, ["Content-Type"] = "application/json" },
        '{"requestToken":"' .. token .. '","quantity":1}')
    end
    n = n + 1
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  print(string.format("%.0f answers/s, %d of them not 2xx, p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms",
    summary.requests / summary.duration * 1e6, summary.errors.status,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency:percentile(99.9) / 1000))
end
