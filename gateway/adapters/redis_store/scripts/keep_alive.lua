#!lua flags=allow-oom
-- keep_alive: the lease of a run's writer begins anew.
-- KEYS 1 meta
-- ARGV 1 run, 2 epoch
-- Result, lines of text: k; or refused: n there is none, x another epoch writes, e and the payload of its run_end

-- include: lib_server
-- include: lib_runs

local META, run = KEYS[1], ARGV[1]
local now = clock()
local state = read_run(META, run)
if not state then
  return 'n'
elseif state.mode == 'e' then
  return 'e\n' .. redis.call('HGET', META, 'z:' .. run)
elseif state.writer ~= ARGV[2] then
  return 'x'
end
state.lease = digits(now + RUN_LEASE_MS)
store_run(META, run, state)
return 'k'
