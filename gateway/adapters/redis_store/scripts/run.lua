#!lua flags=no-writes
-- run: the retained runs of a session, or one of them.
-- KEYS 1 meta
-- ARGV 1 run, or empty: all, in the order in which they began
-- Result: array: now (ms), then for each: name, state, progress or nil, payloads of run_start and run_end or nil

-- include: lib_server
-- include: lib_runs

local META = KEYS[1]
local answer = { digits((clock())) }
for _, run in ipairs(ARGV[1] == '' and run_names(META) or { ARGV[1] }) do
  local stored = redis.call('HMGET', META, 'r:' .. run, 's:' .. run, 'i:' .. run, 'z:' .. run)
  if stored[1] then
    answer[#answer + 1] = run
    for i = 1, 4 do
      answer[#answer + 1] = stored[i]
    end
  end
end
return answer
