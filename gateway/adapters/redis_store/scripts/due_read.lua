#!lua flags=no-writes
-- due_read: overdue sessions of a shard, the longest overdue first.
-- KEYS 1 zset session -> earliest deadline (ms)
-- ARGV 1 at most so many
-- Result: array: session, score, overdue (ms), ...

-- include: lib_server

local now = clock()
local stored = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local found = {}
for i = 1, #stored, 2 do
  found[#found + 1] = stored[i]
  found[#found + 1] = stored[i + 1]
  found[#found + 1] = math.floor(now - stored[i + 1])
end
return found
