#!lua flags=no-writes
-- lag: what waits in one shard.
-- KEYS 1 stream, 2 dead letters
-- Result: array: items, dead letters, age of the oldest item (ms)

-- include: lib_server

local _, now_us = clock()
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local age_ms = oldest and math.floor((now_us - string.match(oldest[1], '^%d+')) / 1000) or 0
return { redis.call('XLEN', KEYS[1]), redis.call('XLEN', KEYS[2]), math.max(0, age_ms) }
