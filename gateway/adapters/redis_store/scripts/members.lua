#!lua flags=no-writes
-- members: those of a set of leases whose lease has not ended.
-- KEYS 1 zset of members by the end of their lease (ms)

-- include: lib_server

local now = clock()
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. digits(now), '+inf')
