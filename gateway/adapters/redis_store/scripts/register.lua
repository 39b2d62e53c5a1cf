#!lua
-- register: a new epoch of a producer, which fences every older one; makes the session when there is none.
-- KEYS 1 meta, 2 log, 3 gws, 4 runs, 5 clients, 6 seen
-- ARGV 1 incarnation, 2 nonces, 3 `p:<producer>`, 4 owner of a session that is made, or empty
-- Result: status (live, deleted), the server's incarnation or empty, epoch, line

-- include: lib_server
-- include: lib_meta
-- include: lib_producers

local status, report = enter(KEYS[1], KEYS[4], ARGV[1], ARGV[2], ARGV[4], { KEYS[2], KEYS[4], KEYS[5], KEYS[6] })
if status ~= 'live' then
  return { status, report }
end
local _, us = clock()
local stored = redis.call('HMGET', KEYS[1], ARGV[3], 'line', 'head')
local known = stored[1] and tonumber(string.match(stored[1], RECORD)) or 0
local epoch = digits(math.max(known + 1, us))
local record = epoch .. ' 0 @' .. stored[3] .. ' '
if stored[1] then
  redis.call('HSET', KEYS[1], ARGV[3], record)
else
  add_producer(KEYS[1], ARGV[3], record)
end
keep_session(KEYS[1], KEYS[5])
return { status, report, epoch, stored[2] }
