#!lua
-- open_run: begins a run or attaches to an open one; either way its writer has a new epoch, which fences the one before.
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, then the two texts of the run
-- ARGV 1 incarnation, 2 head of the frames, 3 run, 4 body of run_start, 5 `1` if it may begin, 6 `1` if it may attach, 7 gateway
--      or empty, 8 due note or empty, 9 owner or empty
-- Result: array
--   o, <line> <told head> <epoch> <1 if it begins> <input offset> <last number> <text bytes> <thinking bytes> <live>, state, gateways
--   e, payload of its run_end   refused: it has ended
--   n, x, d                     refused: there is none, it is open, due note stale
--   m                           nothing done: call `enter`, then again

-- include: lib_server
-- include: lib_runs
-- include: lib_producers
-- include: lib_write

local META, run, gateway = KEYS[1], ARGV[3], ARGV[7]
local now, now_us = clock()
local w = open_writer(META, KEYS[2], KEYS[3], ARGV[1], now, ARGV[2])
if not w then
  return { 'm' }
end
w.clients = KEYS[4]
local state = read_run(META, run)
if state and state.mode == 'e' then
  if tonumber(state.lease) > now then
    return { 'e', redis.call('HGET', META, 'z:' .. run) }
  end
  state = nil
end
if not state and ARGV[5] ~= '1' then
  return { 'n' }
elseif state and ARGV[6] ~= '1' then
  return { 'x' }
elseif ARGV[8] == '' or now - ARGV[8] > DUE_NOTE_MS then
  return { 'd' }
end

local field, offset, number, opaque = 'p:~run/' .. run, '0', '0', ''
if state then
  local progress = redis.call('HGET', META, 's:' .. run)
  if progress then
    offset, number, opaque = string.match(progress, '^(%d+) (%d+) [^\n]*\n(.*)$')
  end
  state.writer, state.lease = new_epoch(META, field, now_us), digits(now + RUN_LEASE_MS)
  store_run(META, run, state)
else
  make_room(w, 1, {})
  -- What goes is gone first: an earlier life of this name has a writer of the same name.
  local _, freed = prune_runs(META, now, RUNS_MAX - 1)
  state = { writer = new_epoch(META, field, now_us), text = '0', thinking = '0', is_new = true }
  w.total = digits(w.total - freed - begin_run(META, run, state.writer, digits(w.head + 1), now))
  write_message(w, 's', run, '0', ARGV[4], false)
end
-- The new epoch has no number yet; who goes on from what is stored here begins at 1.
redis.call('HSET', META, 's:' .. run, offset .. ' 0 ' .. gateway .. '\n' .. opaque)
if ARGV[9] ~= '' then
  redis.call('HSETNX', META, 'owner', ARGV[9])
end
close_writer(w)
local is_live = state.is_new and w.receivers > 0 or not state.is_new and #w.channels > 0
return {
  'o',
  table.concat({ w.line, writer_head(w), state.writer, state.is_new and '1' or '0', offset, number, state.text,
    state.thinking, is_live and '1' or '0' }, '\n'),
  opaque,
  string.sub(w.gateways, 2),
}
