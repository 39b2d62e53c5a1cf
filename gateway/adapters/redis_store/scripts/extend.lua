#!lua flags=allow-oom
-- extend: leases of one consumer begin anew, each as long as it was taken for.
-- KEYS 1 stream
-- ARGV 1 consumer, then entries
-- Result: array of 1 and 0: whether the consumer still holds that entry, also after its lease's end

-- include: lib_inbox

local held = {}
local exists = redis.call('EXISTS', KEYS[1]) == 1
for i = 2, #ARGV do
  local pending = exists and redis.call('XPENDING', KEYS[1], GROUP, ARGV[i], ARGV[i], 1)[1]
  local lease_ms, consumer = string.match(pending and pending[2] or '', '^(%d+) (.*)$')
  held[i - 1] = consumer == ARGV[1] and 1 or 0
  if consumer == ARGV[1] then
    redis.call('XCLAIM', KEYS[1], GROUP, pending[2], 0, ARGV[i], 'IDLE', IDLE_BASE_MS - lease_ms, 'JUSTID')
  end
end
return held
