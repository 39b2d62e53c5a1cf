#!lua flags=allow-oom
-- sweep: everything overdue of one session: messages in the reorder window, then abandoned runs, expired asks and kept pushes.
-- Looks at the session itself, so that it may be called at any time and by many.
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, 5 kept, 6 pending, 7 outbox, 8 absent
-- ARGV 1 incarnation, 2 head of the frames, 3 session, 4 `"tenant":..,"session":..`
-- Result, lines of text:
--   s <line> <told head> <1 if the outbox has items> <ms until the next deadline, or empty> <events, a word each> <gateway>...
--   m   nothing done: no meta, a tombstone, or meta names another server: call `enter`, then again

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
local now = clock()
local w = open_writer(META, KEYS[2], KEYS[3], ARGV[1], now, ARGV[2])
if not w then
  return 'm'
end
w.clients = CLIENTS

local events, next_at = {}, nil
local function happened(what, times)
  for _ = 1, times do
    events[#events + 1] = what
  end
end
local function due(at)
  if at then
    next_at = math.min(next_at or at, at)
  end
end

due(window_due(release_pending(w, KEPT, PENDING)))
happened('released', w.released or 0)
happened('gap', w.gaps or 0)

for _, run in ipairs(run_names(META)) do
  local state = read_run(META, run)
  if state and state.mode == 'o' then
    if tonumber(state.lease) <= now then
      end_run(w, run, 'abandoned', '')
      cancel_asks(w, KEPT, run)
      local id = 'run:' .. id_part(ARGV[3]) .. ':' .. id_part(run) .. ':abandoned'
      put_outbox(OUTBOX, event_item(w, ARGV[4], id, 'abandoned', ',"run":' .. json_text(run)))
      happened('abandoned', 1)
    else
      due(tonumber(state.lease))
    end
  end
end

local expired, _, next_ask = expire_asks(w, KEPT, OUTBOX, ARGV[3], ARGV[4])
happened('expired', expired)
due(next_ask)
due(prune_resolved(KEPT, now))
local gone, next_kept = expire_kept(w, KEPT)
happened('kept', gone)
due(next_kept)

local has_outbox = redis.call('XLEN', OUTBOX) > 0
if has_outbox then
  -- What was accepted outlives everything else that a session has (G12).
  due(now + OUTBOX_RETRY_MS)
  keep(OUTBOX, META_MS)
  keep(META, META_MS)
  keep(CLIENTS, META_MS)
end
close_writer(w)
return 's\n' .. w.line .. '\n' .. writer_head(w) .. (has_outbox and '\n1\n' or '\n0\n')
  .. (next_at and digits(math.max(0, next_at - now)) or '') .. '\n' .. table.concat(events, ' ') .. w.gateways
