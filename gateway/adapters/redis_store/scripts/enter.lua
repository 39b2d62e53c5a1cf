#!lua
-- enter: makes the session when there is none, opens a fork when meta names another server than this one (design.md 4).
-- KEYS 1 meta, 2 log, 3 clients, 4 runs, 5 seen, 6 kept, 7 pending, 8 outbox
-- ARGV 1 incarnation, 2 nonces, 3 owner, 4 `1` if it may be made, 5 field of a producer that gets a new epoch, or empty
-- Result, lines of text: live | deleted | missing, the server's incarnation, line, the producer's epoch

-- include: lib_server
-- include: lib_meta
-- include: lib_producers

local META, RUNS, field = KEYS[1], KEYS[4], ARGV[5]
local leftovers = ARGV[4] == '1' and { unpack(KEYS, 2) } or nil
local state, server = enter(META, RUNS, ARGV[1], ARGV[2], ARGV[3], leftovers)
if state ~= 'live' then
  return state .. '\n' .. server .. '\n\n'
end
if ARGV[3] ~= '' then
  redis.call('HSETNX', META, 'owner', ARGV[3])
end
local stored = redis.call('HMGET', META, 'line', 'head', field)
local epoch = ''
if field ~= '' then
  local _, now_us = clock()
  local record = stored[3]
  local last_epoch = record and tonumber(string.match(record, '^%d+')) or 0
  epoch = digits(math.max(last_epoch + 1, now_us))
  local fresh = epoch .. ' 0 @' .. stored[2] .. ' '
  if record then
    redis.call('HSET', META, field, fresh)
  else
    add_producer(META, field, fresh)
  end
  keep_session(META, KEYS[3])
end
return 'live\n' .. server .. '\n' .. stored[1] .. '\n' .. epoch
