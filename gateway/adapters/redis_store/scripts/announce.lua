#!lua flags=allow-oom
-- announce: a member of a set of leases: gateways, or the sessions of a user. Members whose lease ended go.
-- KEYS 1 zset of members by the end of their lease (ms)
-- ARGV 1 member, 2 lease (ms)
-- Result: 1 when it was no member before, else 0

-- include: lib_server

local now = clock()
local added = redis.call('ZADD', KEYS[1], 'GT', digits(now + ARGV[2]), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', digits(now))
keep(KEYS[1], tonumber(ARGV[2]))
return added
