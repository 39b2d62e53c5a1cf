#!lua
-- open_ask: an ask in the log, kept until it is resolved, and announced at once to the session's gateways.
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, 5 kept, 6 pending, 7 outbox, 8 absent
-- ARGV 1 incarnation, 2 head of the frames, 3 session, 4 `"tenant":..,"session":..`, 5 ask, 6 run or empty, 7 body, 8 record,
--      9 expires in (ms), 10 owner, 11 due note or empty
-- Result: array: lines of text, then record, frame, resolution
--   k <status> <seq> <expires in ms> <1 if new> <line> <told head> <live> <gateway>...
--   r <reason>
--   m   nothing done: call `enter`, then again

-- include: lib_server
-- include: lib_due
-- include: lib_runs
-- include: lib_producers
-- include: lib_write
-- include: lib_outbox
-- include: lib_kept
-- include: lib_asks
-- include: lib_order

local META, CLIENTS, KEPT, PENDING, OUTBOX = KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local name, run, body, expires_ms = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[9])
local now = clock()
local w = open_writer(META, KEYS[2], KEYS[3], ARGV[1], now, ARGV[2])
if not w then
  return { 'm' }
end
w.clients = CLIENTS
release_pending(w, KEPT, PENDING)
local _, open = expire_asks(w, KEPT, OUTBOX, ARGV[3], ARGV[4])

local function finish(ask, is_new)
  close_writer(w)
  local lines = { 'k', ask.status, ask.seq, digits(math.max(0, ask.expiry - now)), is_new, w.line, writer_head(w),
    w.receivers > 0 and '1' or '0' }
  return { table.concat(lines, '\n') .. w.gateways, ask.record, ask.frame, ask.resolution }
end
local function refuse(reason)
  close_writer(w)
  return { 'r\n' .. reason }
end

local stored = redis.call('HGET', KEPT, 'a:' .. name) or redis.call('HGET', KEPT, 'r:' .. name)
if stored then
  local ask = parse_ask(stored)
  -- The frame ends in the body, its expiry and two braces.
  local tail = '"payload":' .. body
  local is_same = string.sub(ask.frame, -(#tail + EXPIRY_CHARS + 2), -(EXPIRY_CHARS + 3)) == tail
  if is_same and ask.record == ARGV[8] then
    return finish(ask, '0')
  end
  return refuse('conflict')
end
if open >= ASKS_OPEN_MAX then
  return refuse('too_many')
end
local state = run ~= '' and read_run(META, run)
if state and state.mode == 'e' then
  return refuse('run_ended')
elseif is_note_stale(ARGV[11], now) then
  return refuse('due_stale')
end

local seq, frame = write_message(w, 'o', '', '0', body .. ',"expiresAt":"' .. iso_time(now + expires_ms) .. '"', true)
local ask = {
  status = 'o', seq = digits(seq), expiry = now + expires_ms, run = run, record = ARGV[8], frame = frame, resolution = '',
}
redis.call('HSET', KEPT, 'a:' .. name, pack_ask(ask))
outlive(w, KEPT, CLIENTS, expires_ms + ASK_RESOLVED_MS)
if ARGV[10] ~= '' then
  redis.call('HSETNX', META, 'owner', ARGV[10])
end
w.asks = '\n' .. name
for _, channel in ipairs(HOLDS and {} or w.channels) do
  redis.call('PUBLISH', channel, '1a\n' .. string.sub(META, 5, -7) .. '\n' .. frame)
end
return finish(ask, '1')
