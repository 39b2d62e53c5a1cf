#!lua flags=allow-oom
-- revoke: what was revoked when; the later of two times stays. Entries that no token can be old enough for go.
-- KEYS 1 hash `<kind>:<id>` -> `<revoked at, Unix s> <kept until, Unix s>`
-- ARGV 1 `<kind>:<id>`, 2 revoked at, 3 seconds to keep

-- include: lib_server

local now = math.floor(clock() / 1000)
local at, keep_until = tonumber(ARGV[2]), now + ARGV[3]
local longest = keep_until
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local known_at, known_until = string.match(stored[i + 1], '^(%d+) (%d+)')
  known_at, known_until = tonumber(known_at), tonumber(known_until)
  if stored[i] == ARGV[1] then
    at, keep_until = math.max(at, known_at), math.max(keep_until, known_until)
    longest = math.max(longest, keep_until)
  elseif known_until <= now then
    redis.call('HDEL', KEYS[1], stored[i])
  else
    longest = math.max(longest, known_until)
  end
end
redis.call('HSET', KEYS[1], ARGV[1], digits(at) .. ' ' .. digits(keep_until))
redis.call('PEXPIREAT', KEYS[1], longest * 1000)
return 1
