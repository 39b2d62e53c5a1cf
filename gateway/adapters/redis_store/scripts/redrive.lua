#!lua
-- redrive: dead letters of one shard go back into it, as new items.
-- KEYS 1 stream, 2 its bytes, 3 waiters, 4 dead letters
-- ARGV 1 tenant as it is told, 2 at most so many (0: those that follow), then entries
-- Result: how many went

-- include: lib_server
-- include: lib_inbox

local letters = {}
if ARGV[2] ~= '0' then
  letters = redis.call('XRANGE', KEYS[4], '-', '+', 'COUNT', ARGV[2])
else
  for i = 3, #ARGV do
    letters[#letters + 1] = redis.call('XRANGE', KEYS[4], ARGV[i], ARGV[i])[1]
  end
end
if #letters == 0 then
  return 0
end
local items = {}
for i = 1, #letters do
  items[i] = letters[i][2][2]
  redis.call('XDEL', KEYS[4], letters[i][1])
end
if redis.call('XLEN', KEYS[4]) == 0 then
  redis.call('DEL', KEYS[4])
end
put_items(KEYS[1], KEYS[2], items)
tell_waiters(KEYS[3], ARGV[1])
return #items
