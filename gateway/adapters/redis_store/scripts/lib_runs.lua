-- Run states, fields of the runs hash: `<o|e> <producer epoch> <text bytes> <thinking bytes> <seq of its first message>`, o for
-- open, e for ended. As tables: the same five values, `is_new` when the hash does not have it.

-- Kept as long as meta while one is open, else for a while after the last end.
local function keep_runs(runs)
  local stored = redis.call('HVALS', runs)
  local value_ms = RUN_MS
  for i = 1, #stored do
    if string.sub(stored[i], 1, 1) == 'o' then
      value_ms = META_MS
    end
  end
  redis.call('PEXPIRE', runs, math.floor(value_ms * 4 / 3))
end

-- Ended runs go first, the oldest of them first; when all are open, the oldest.
local function drop_oldest_run(runs)
  local stored = redis.call('HGETALL', runs)
  local victim, victim_state, victim_first
  for i = 1, #stored, 2 do
    local state, first = string.match(stored[i + 1], '^(%a) %d+ %d+ %d+ (%d+)')
    first = tonumber(first)
    if not victim or state < victim_state or (state == victim_state and first < victim_first) then
      victim, victim_state, victim_first = stored[i], state, first
    end
  end
  redis.call('HDEL', runs, victim)
end

local function store_runs(runs, states)
  local changes_life = false
  for run, state in pairs(states) do
    redis.call('HSET', runs, run, state[1] .. ' ' .. state[2] .. ' ' .. digits(state[3]) .. ' ' .. digits(state[4]) .. ' '
      .. digits(state[5]))
    changes_life = changes_life or state.is_new or state[1] == 'e'
  end
  if changes_life then
    for _ = RUNS_MAX + 1, redis.call('HLEN', runs) do
      drop_oldest_run(runs)
    end
    keep_runs(runs)
  end
end
