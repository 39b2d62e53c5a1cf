-- Runs (design.md 6), fields of meta: `runs` the names of retained ones in the order in which they began, newline between;
-- `r:<run>` its state: `<o|e> <last seq> <until ms> <text> <seq> <kept> <thinking> <seq> <kept> <writer> <first seq>`: open or
--   ended; lease, once ended how long it is retained; for either text its UTF-8 bytes, the seq of its last frame and the
--   bytes of the prefix that is kept; epoch of its writer (0: none, it comes by pushes);
-- `s:<run>` `<input offset> <last number> <gateway>` and after a newline the opaque state of its writer;
-- `i:<run>`, `z:<run>` the payloads of run_start and run_end; `x:<run>` lines `<client>\t<seen seq>\t<seen at>` of its cuts;
-- `void` the seq up to which nothing can be rebuilt any more, because a run or a kept item went.
-- Texts are kept JSON-escaped in `text:<run>` and `think:<run>`; names as keys.py makes them.

local STATE = '^(%a) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$'

-- Scripts that the names of the runs are not known to derive the keys; they are in the session's slot. Such scripts declare
-- a key that is never there: while the slot moves key by key, a text that is not here would be refused to them half-way.
local function text_keys(meta, run)
  local start = string.sub(meta, 1, -5)
  local name = string.gsub(run, '[^%w_.~-]', function(char)
    return string.format('%%%02X', string.byte(char))
  end)
  return start .. 'text:' .. name, start .. 'think:' .. name
end

-- The state as a table, nil when there is none. Numbers stay text.
local function read_run(meta, run)
  local record = redis.call('HGET', meta, 'r:' .. run)
  if not record then
    return nil
  end
  local mode, last, lease, text, text_seq, text_kept, thinking, thinking_seq, thinking_kept, writer, first =
    string.match(record, STATE)
  return {
    mode = mode, last = last, lease = lease, text = text, text_seq = text_seq, text_kept = text_kept,
    thinking = thinking, thinking_seq = thinking_seq, thinking_kept = thinking_kept, writer = writer, first = first,
  }
end

-- `origin`: ` <writer> <first seq>`, where that is at hand instead of the two.
local function store_run(meta, run, state, origin)
  redis.call('HSET', meta, 'r:' .. run, table.concat({ state.mode, state.last, state.lease, state.text, state.text_seq,
    state.text_kept, state.thinking, state.thinking_seq, state.thinking_kept }, ' ')
    .. (origin or ' ' .. state.writer .. ' ' .. state.first))
end

local function run_names(meta)
  local names = {}
  for name in string.gmatch(redis.call('HGET', meta, 'runs') or '', '[^\n]+') do
    names[#names + 1] = name
  end
  return names
end

-- Below `seq` nothing can be rebuilt any more.
local function raise_void(meta, seq)
  if tonumber(redis.call('HGET', meta, 'void') or 0) < tonumber(seq) then
    redis.call('HSET', meta, 'void', seq)
  end
end

-- A retained run and its texts go; returns the bytes of text that are free then.
local function drop_run(meta, run, state)
  redis.call('HDEL', meta, 'r:' .. run, 's:' .. run, 'i:' .. run, 'z:' .. run, 'x:' .. run)
  if redis.call('HDEL', meta, 'p:~run/' .. run) == 1 then
    redis.call('HINCRBY', meta, 'producers', -1)
  end
  redis.call('DEL', text_keys(meta, run))
  raise_void(meta, state.last)
  return state.text_kept + state.thinking_kept
end

-- Ended runs whose time is over go; then, as long as there are more than `limit`, ended ones, then the oldest.
-- Returns the names that stay and the bytes of text that are free.
local function prune_runs(meta, now, limit)
  local stay, freed, ended = {}, 0, 0
  for _, name in ipairs(run_names(meta)) do
    local state = read_run(meta, name)
    if state and state.mode == 'e' and tonumber(state.lease) <= now then
      freed = freed + drop_run(meta, name, state)
    elseif state then
      stay[#stay + 1] = name
      ended = ended + (state.mode == 'e' and 1 or 0)
    end
  end
  for _ = limit + 1, #stay do
    for place, name in ipairs(stay) do
      local state = read_run(meta, name)
      if ended == 0 or state.mode == 'e' then
        freed = freed + drop_run(meta, name, state)
        ended = math.max(0, ended - 1)
        table.remove(stay, place)
        break
      end
    end
  end
  return stay, freed
end

-- An open run that is forgotten never ends for those who read it. These must end first when `more` runs are open at once than
-- now: those that were silent for longest, and none that `named` has as a key. nil: that would not be enough.
local function surplus_runs(meta, more, named)
  local surplus, names = {}, run_names(meta)
  local too_many = more - RUNS_MAX
  if #names + too_many <= 0 then
    return surplus
  end
  for _, name in ipairs(names) do
    local state = read_run(meta, name)
    if state and state.mode == 'o' then
      too_many = too_many + 1
      if not named[name] then
        state.name = name
        surplus[#surplus + 1] = state
      end
    end
  end
  if too_many > #surplus then
    return nil
  end
  table.sort(surplus, function(one, other)
    return tonumber(one.last) < tonumber(other.last)
  end)
  for place = #surplus, math.max(0, too_many) + 1, -1 do
    surplus[place] = nil
  end
  return surplus
end

-- Body of a run_end that is not its writer's: digests are not known. `members`: more of it, as JSON from after the reason.
local function end_body(run, state, reason, members)
  local name = '"' .. string.gsub(run, '["\\]', '\\%0') .. '"'
  return '{"kind":"run_end","run":' .. name .. ',"reason":"' .. reason .. '"' .. members .. ',"bytes":' .. state.text
    .. ',"code_points":null,"sha256":null,"reasoning":{"bytes":' .. state.thinking
    .. ',"code_points":null,"sha256":null,"duration_ms":null}'
end

-- The gateway where a run is streamed hears at once that it ends; `payload`: of the run_end that is to be written.
local function tell_writer(meta, run, payload)
  local gateway = string.match(redis.call('HGET', meta, 's:' .. run) or '', '^%d+ %d+ ([^\n]+)')
  if gateway then
    redis.call('PUBLISH', 'rr:ch:' .. gateway, '1i\n' .. string.sub(meta, 5, -7) .. '\n' .. run .. '\n' .. payload)
  end
end

-- A run begins at `first` (text). Texts that an earlier one of its name left behind go. Returns the bytes that became free.
local function begin_run(meta, run, writer, first, now)
  local names, freed = prune_runs(meta, now, RUNS_MAX - 1)
  names[#names + 1] = run
  redis.call('DEL', text_keys(meta, run))
  local lease = now + (writer == '0' and RUN_PUSH_LEASE_MS or RUN_LEASE_MS)
  redis.call('HSET', meta, 'runs', table.concat(names, '\n'), 'r:' .. run,
    'o ' .. first .. ' ' .. digits(lease) .. ' 0 0 0 0 0 0 ' .. writer .. ' ' .. first)
  return freed
end
