#!lua flags=no-writes
-- snapshot: what can be rebuilt of a session below its first retained message, in one instant (design.md 4).
-- KEYS 1 meta, 2 log, 3 kept
-- ARGV 1 incarnation
-- Result: array: lines of text, `forks`, for each run in the order in which they began `<run> <o|e> <text until> <text kept>
-- <thinking until> <thinking kept> <last seq>` as lines, payloads of run_start and run_end (or empty), then seq and frame of
-- each kept item
--   p <epoch> <told head> <lost> <void>
--   m   no meta, or a tombstone
--   s   meta names another server than this one: call `enter`, then again

-- include: lib_server
-- include: lib_page
-- include: lib_runs
-- include: lib_askrecord

local META, LOG, KEPT = KEYS[1], KEYS[2], KEYS[3]
local meta = redis.call('HMGET', META, 'inc', 'epoch', 'log', 'forks', 'state', 'void')
if not meta[1] or not meta[3] or meta[5] == 'deleted' then
  return { 'm' }
end
if (meta[1] ~= ARGV[1] or VERIFY_EVERY_CALL) and meta[1] ~= server_incarnation() then
  return { 's' }
end
local now = clock()
local head, lost, held = bounds(META, LOG, meta[3])

-- Runs that lie wholly in the log need nothing. A text goes up to the first of its frames that is retained.
local runs, sought, tracks = {}, {}, 0
for _, run in ipairs(run_names(META)) do
  local state = read_run(META, run)
  if tonumber(state.first) <= lost and (state.mode == 'o' or tonumber(state.lease) > now) then
    runs[#runs + 1] = { name = run, state = state }
    local its = { first = tonumber(state.first), state = state }
    for _, track in ipairs({ 'text', 'thinking' }) do
      if tonumber(state[track .. '_seq']) > lost then
        its[track], tracks = true, tracks + 1
      end
    end
    sought[run] = its
  end
end
local position = lost
while tracks > 0 and position < head + held do -- the first retained frame may be held
  local entries = redis.call('XRANGE', LOG, position + 1, '+', 'COUNT', 64)
  if #entries == 0 then
    break
  end
  for i = 1, #entries do
    local class, at, name = string.match(entries[i][2][2], '^(%a) %d+ (%d+) %d* %d* (.*)$')
    local its, track = sought[name or ''], class == 't' and 'thinking' or 'text'
    if its and its[track] then
      its.state[track], its[track], tracks = at, nil, tracks - 1
    end
  end
  position = tonumber(string.match(entries[#entries][1], '^%d+'))
end

-- Where held messages have left the log, nobody knows any more how much of a text was there before them: none is shown.
if held > 0 then
  local first = redis.call('XRANGE', LOG, '-', '+', 'COUNT', 1)[1]
  if not first or tonumber(string.match(first[1], '^%d+')) > head + 1 then
    for _, run in ipairs(runs) do
      for _, track in ipairs({ 'text', 'thinking' }) do
        if tonumber(run.state[track .. '_seq']) > head then
          run.state[track] = '0'
        end
      end
    end
  end
end

local briefs = {}
for i, run in ipairs(runs) do
  local state = run.state
  local payloads = redis.call('HMGET', META, 'i:' .. run.name, 'z:' .. run.name)
  briefs[3 * i - 2] = table.concat({ run.name, state.mode, state.text, state.text_kept, state.thinking,
    state.thinking_kept, state.last }, '\n')
  briefs[3 * i - 1], briefs[3 * i] = payloads[1] or '', payloads[2] or ''
end

local items = {}
local stored = redis.call('HGETALL', KEPT)
for i = 1, #stored, 2 do
  local kind, name = string.sub(stored[i], 1, 2), string.sub(stored[i], 3)
  if kind == 'k:' and tonumber(name) <= head then
    items[#items + 1] = { seq = name, frame = string.match(stored[i + 1], '^%d+ (.*)$') }
  elseif kind == 'a:' then
    local ask = parse_ask(stored[i + 1])
    items[#items + 1] = tonumber(ask.seq) <= head and ask or nil
  end
end
table.sort(items, function(one, two)
  return tonumber(one.seq) < tonumber(two.seq)
end)
local kept = {}
for i, item in ipairs(items) do
  kept[2 * i - 1], kept[2 * i] = item.seq, item.frame
end
return {
  table.concat({ 'p', meta[2], told_head(head, held), digits(lost),
    digits(void_seq(META, LOG, head, lost, meta[3], meta[6], now)) }, '\n'),
  meta[4],
  briefs,
  kept,
}
