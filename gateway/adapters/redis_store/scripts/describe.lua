#!lua flags=allow-oom
-- describe: a gateway's record of itself, for people. Written when memory is full, too: it takes the place of the last one.
-- KEYS 1 the record
-- ARGV 1 record, 2 lease (ms)

redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
