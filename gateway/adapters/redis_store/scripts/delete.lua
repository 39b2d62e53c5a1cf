#!lua flags=allow-oom
-- delete: the tombstone first, then everything else; the session's gateways are told.
-- KEYS 1 meta, 2 gws, then every other key of the session
-- Result: 1, or 0 when there was none

-- include: lib_server
-- include: lib_runs

local META, GWS = KEYS[1], KEYS[2]
local meta = redis.call('HMGET', META, 'state', 'epoch', 'fork', 'line', 'head', 'ts', 'forks')
if not meta[1] or meta[1] == 'deleted' then
  return 0
end
local now = clock()
local leases = redis.call('HGETALL', GWS)
for _, run in ipairs(run_names(META)) do
  redis.call('DEL', text_keys(META, run))
end
redis.call('DEL', META)
redis.call('HSET', META, 'v', '1', 'inc', '-', 'state', 'deleted', 'epoch', meta[2], 'fork', meta[3], 'line', meta[4],
  'head', meta[5], 'lost', meta[5], 'bytes', '0', 'ts', meta[6], 'forks', meta[7])
redis.call('PEXPIRE', META, TOMBSTONE_MS)
redis.call('DEL', unpack(KEYS, 2))
for i = 1, #leases, 2 do
  if tonumber(leases[i + 1]) > now then
    redis.call('PUBLISH', 'rr:ch:' .. leases[i], '1x\n' .. string.sub(META, 5, -7))
  end
end
return 1
