#!lua flags=allow-oom
-- usage: what a gateway tells of its tenants' usage, for what all others told. Entries whose lease ended go.
-- KEYS 1 hash: gateway -> `<end of the lease, ms> <usage>`
-- ARGV 1 gateway, 2 usage, 3 lease (ms)
-- Result: the usages of the others

-- include: lib_server

local now = clock()
local others = {}
local told = redis.call('HGETALL', KEYS[1])
for i = 1, #told, 2 do
  local until_ms, usage = string.match(told[i + 1], '^(%d+) (.*)$')
  if not until_ms or tonumber(until_ms) <= now then
    redis.call('HDEL', KEYS[1], told[i])
  elseif told[i] ~= ARGV[1] then
    others[#others + 1] = usage
  end
end
redis.call('HSET', KEYS[1], ARGV[1], digits(now + ARGV[3]) .. ' ' .. ARGV[2])
keep(KEYS[1], tonumber(ARGV[3]))
return others
