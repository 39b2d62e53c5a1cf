#!lua flags=allow-oom
-- delete: the tombstone first, then everything else; the session's gateways are told.
-- KEYS 1 meta, 2 gws, then every other key of the session, and absent
-- Result: 1, or 0 when there was none

-- include: lib_server
-- include: lib_runs

local META, GWS = KEYS[1], KEYS[2]
local meta = redis.call('HMGET', META, 'state', 'epoch', 'fork', 'line', 'log', 'forks')
if not meta[1] or meta[1] == 'deleted' then
  return 0
end
local now = clock()
local leases = redis.call('GET', GWS) or ''
for _, run in ipairs(run_names(META)) do
  redis.call('DEL', text_keys(META, run))
end
local head, ts = log_state(meta[5])
redis.call('DEL', META)
redis.call('HSET', META, 'v', '1', 'inc', '-', 'state', 'deleted', 'epoch', meta[2], 'fork', meta[3], 'line', meta[4],
  'log', head .. ' ' .. ts .. ' ' .. head .. ' 0 0 ' .. head .. ' 0', 'forks', meta[6])
redis.call('PEXPIRE', META, TOMBSTONE_MS)
redis.call('DEL', unpack(KEYS, 2))
for lease, gateway in string.gmatch(leases, '(%d+) ([^\n]+)') do
  if tonumber(lease) > now then
    redis.call('PUBLISH', 'rr:ch:' .. gateway, '1x\n' .. string.sub(META, 5, -7))
  end
end
return 1
