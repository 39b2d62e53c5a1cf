-- The meta hash: which server wrote it (design.md 4 "epoch and fork"), how an epoch and a fork begin.
-- Fields: v epoch fork line forks inc log visible gen owner state, `p:<name>` for each producer (their number in
-- `producers`), and what lib_runs says. `line` is `<epoch>.<fork>`. `log` is one field because every append reads and writes
-- all of it. A tombstone's `inc` is `-`, which no server has.
-- `visible` is written at the beginning, and where appends wait for replicas (lib_visible); alone it means nothing.

-- Nonces: ten characters for an epoch, eight for a fork.
local function epoch_nonce(nonces)
  return string.sub(nonces, 1, 10)
end

local function fork_nonce(nonces)
  return string.sub(nonces, 11, 18)
end

-- `forks` has one line a fork: id, base, then of every retained run its name, and its text length and, where it has thinking, a
-- space and that length; tabs between; oldest first.
local function open_fork(meta, incarnation, nonces)
  local stored = redis.call('HMGET', meta, 'forks', 'log', 'epoch', 'runs')
  local fork = { fork_nonce(nonces), (log_state(stored[2])) }
  for run in string.gmatch(stored[4] or '', '[^\n]+') do
    fork[#fork + 1] = run
    local text, thinking = string.match(redis.call('HGET', meta, 'r:' .. run), '^%a %d+ %d+ (%d+) %d+ %d+ (%d+)')
    fork[#fork + 1] = thinking == '0' and text or text .. ' ' .. thinking
  end
  local forks = stored[1]
  local _, newlines = string.gsub(forks, '\n', '')
  for _ = FORKS_KEPT - 1, newlines do
    forks = string.match(forks, '\n(.*)')
  end
  redis.call('HSET', meta, 'inc', incarnation, 'fork', fork[1], 'line', stored[3] .. '.' .. fork[1],
    'forks', forks .. '\n' .. table.concat(fork, '\t'))
end

-- Meta is missing: what an older life left behind goes, numbers begin again (failure catalogue R18).
local function begin_epoch(meta, leftovers, incarnation, nonces, owner)
  local epoch, fork = epoch_nonce(nonces), fork_nonce(nonces)
  redis.call('DEL', meta, unpack(leftovers))
  redis.call('HSET', meta, 'inc', incarnation, 'line', epoch .. '.' .. fork, 'log', '0 0 0 0 0 0 0',
    'v', '1', 'epoch', epoch, 'fork', fork, 'forks', fork .. '\t0', 'visible', '0',
    'gen', '0', 'state', 'live')
  if owner ~= '' then
    redis.call('HSET', meta, 'owner', owner)
  end
  redis.call('PEXPIRE', meta, math.floor(META_MS * 4 / 3))
end

-- For scripts that write. Afterwards meta, if there is one, names the server that runs this script.
-- Returns 'live', 'deleted' or 'missing', and the server's incarnation when the caller named another one, else ''.
-- With `leftovers` a missing meta is made.
local function enter(meta, given, nonces, owner, leftovers)
  local stored = redis.call('HMGET', meta, 'inc', 'log', 'state')
  local server = given
  if stored[1] ~= given or VERIFY_EVERY_CALL then
    server = server_incarnation()
  end
  local report = server == given and '' or server
  if stored[3] == 'deleted' then
    return 'deleted', report
  end
  if not stored[1] or not stored[2] then
    if not leftovers then
      return 'missing', report
    end
    begin_epoch(meta, leftovers, server, nonces, owner)
    return 'live', report, true
  end
  if stored[1] ~= server then
    open_fork(meta, server, nonces)
  end
  return 'live', report, false
end

-- Meta and clients outlive every lease. Each by itself: an ask may have given one of them more time than the other.
local function keep_session(meta, clients)
  keep(meta, META_MS)
  keep(clients, META_MS)
end
