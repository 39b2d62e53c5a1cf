#!lua flags=allow-oom
-- mark: a write behind everything that was written before it, whoever wrote it, so that WAIT on this connection covers that.
-- KEYS 1 the mark
-- Result: 1

redis.call('SET', KEYS[1], '1', 'PX', 60000)
return 1
