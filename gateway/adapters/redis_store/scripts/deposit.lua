#!lua
-- deposit: items into an inbox shard, in order, whole or not at all; who waits there is told.
-- KEYS 1 stream, 2 its bytes, 3 waiters
-- ARGV 1 tenant as it is told, then the items
-- Result: 1, or 0 when it is full

-- include: lib_server
-- include: lib_inbox

local INBOX, BYTES = KEYS[1], KEYS[2]
local size = 0
for i = 2, #ARGV do
  size = size + #ARGV[i]
end
local items = redis.call('XLEN', INBOX)
local bytes = tonumber(redis.call('GET', BYTES) or 0)
-- What is larger than the bound alone still passes an empty shard.
if items > 0 and (items + #ARGV - 1 > INBOX_MAX_ITEMS or bytes + size > INBOX_MAX_BYTES) then
  return 0
end
put_items(INBOX, BYTES, { unpack(ARGV, 2) })
tell_waiters(KEYS[3], ARGV[1])
return 1
