-- A crowd at an item that is sold out, or at one that is not open: the edge refuses by the path alone, so nobody needs a token.
wrk.method = "POST"
wrk.body = "{}"
wrk.headers["Content-Type"] = "application/json"

function done(summary, latency)
  print(string.format("%.0f answers/s (all of them refusals), p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms",
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency:percentile(99.9) / 1000))
end
