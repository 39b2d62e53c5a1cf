#!lua
-- resolve_ask: the first valid answer wins, in one instant with the item for the agent; or the agent takes its ask back.
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, 5 kept, 6 pending, 7 outbox, 8 absent
-- ARGV 1 incarnation, 2 head of the frames, 3 session, 4 `"tenant":..,"session":..`, 5 ask, 6 status: a or c, 7 body of
--      `ask_resolved`, 8 item or empty, 9 due note or empty
-- Result: array: lines of text, then record, frame, resolution
--   k <status> <seq> <ms until its outcome is forgotten> <1 if this answer is the outcome> <line> <told head> <live> <gateway>...
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
local name, body, item = ARGV[5], ARGV[7], ARGV[8]
local now = clock()
local w = open_writer(META, KEYS[2], KEYS[3], ARGV[1], now, ARGV[2])
if not w then
  return { 'm' }
end
w.clients = CLIENTS
release_pending(w, KEPT, PENDING)
expire_asks(w, KEPT, OUTBOX, ARGV[3], ARGV[4])

local function refuse(reason)
  close_writer(w)
  return { 'r\n' .. reason }
end

local open = redis.call('HGET', KEPT, 'a:' .. name)
local stored = open or redis.call('HGET', KEPT, 'r:' .. name)
if not stored then
  return refuse('not_found')
end
local ask = parse_ask(stored)
if open then
  if item ~= '' and not has_outbox_room(OUTBOX, #item) then
    return refuse('outbox_full')
  elseif item ~= '' and is_note_stale(ARGV[9], now) then
    return refuse('due_stale')
  elseif item ~= '' then
    put_outbox(OUTBOX, item)
    keep(META, META_MS)
    keep(CLIENTS, META_MS)
  end
  resolve_ask(w, KEPT, name, ask, ARGV[6], body)
end
close_writer(w)
-- The same answer again: its first attempt won and was not heard.
local is_winner = ask.resolution == body .. '}' and '1' or '0'
local lines = { 'k', ask.status, ask.seq, digits(math.max(0, ask.expiry - now)), is_winner, w.line, writer_head(w),
  w.receivers > 0 and '1' or '0' }
return { table.concat(lines, '\n') .. w.gateways, ask.record, ask.frame, ask.resolution }
