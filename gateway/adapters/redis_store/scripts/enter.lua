#!lua
-- enter: makes the session when there is none, opens a fork when meta names another server than this one (design.md 4).
-- KEYS 1 meta, 2 log, 3 clients, 4 seen, 5 kept, 6 pending, 7 outbox
-- ARGV 1 incarnation, 2 nonces, 3 owner, 4 `1` if it may be made, 5 field of a producer that gets a new epoch, or empty
-- Result, lines of text: live | deleted | missing, the server's incarnation, line, the producer's epoch

-- include: lib_server
-- include: lib_meta
-- include: lib_producers

local META, field = KEYS[1], ARGV[5]
local leftovers = ARGV[4] == '1' and { unpack(KEYS, 2) } or nil
local state, server = enter(META, ARGV[1], ARGV[2], ARGV[3], leftovers)
if state ~= 'live' then
  return state .. '\n' .. server .. '\n\n'
end
if ARGV[3] ~= '' then
  redis.call('HSETNX', META, 'owner', ARGV[3])
end
local epoch = ''
if field ~= '' then
  local _, now_us = clock()
  epoch = new_epoch(META, field, now_us)
  keep_session(META, KEYS[3])
end
return 'live\n' .. server .. '\n' .. redis.call('HGET', META, 'line') .. '\n' .. epoch
