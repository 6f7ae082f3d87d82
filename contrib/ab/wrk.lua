-- SPDX-License-Identifier: MIT
-- Given to wrk by the laboratory: prints exact figures, and latencies at the probabilities of loads.GRID, in us.
local function say(key, value)
  io.write(string.format("weir-ab\t%s\t%s\n", key, value))
end

function done(summary, latency, requests)
  say("bytes", string.format("%d", summary.bytes))
  say("us", string.format("%d", summary.duration))
  say("mean", string.format("%.3f", latency.mean))
  say("q0", string.format("%d", latency.min))
  for i = 1, 99 do
    say(string.format("q%g", i / 100), string.format("%d", latency:percentile(i)))
  end
  for _, q in ipairs({ 0.995, 0.999, 0.9999 }) do
    say(string.format("q%g", q), string.format("%d", latency:percentile(q * 100)))
  end
  say("q1", string.format("%d", latency.max))
end
