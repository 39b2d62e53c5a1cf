-- Messages that other scripts than `append` write: one writer a script call, between open_writer and close_writer nobody else
-- touches what it holds of meta (head, line, plain, the runs of its messages). Included after lib_server and lib_runs.
-- A writer has meta, line, now_ms, stamp (ms of its messages, text), head, channels, gateways (`\n<gateway>` for each),
-- receivers; whoever opens it sets `clients` (key) before close_writer. `asks`: a line for each ask among its messages.

-- include: lib_visible

local RUN = '^(%a) %d+ %d+ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)( %d+ %d+)$'

-- nil when there is no meta, a tombstone, or meta names another server: call `enter`, then again.
-- `payload_head`: what frames of this session have between timestamp and payload.
local function open_writer(meta, log, gws, incarnation, now, payload_head)
  local stored = redis.call('HMGET', meta, 'inc', 'line', 'log')
  if stored[1] ~= incarnation or not stored[3] or (VERIFY_EVERY_CALL and server_incarnation() ~= incarnation) then
    return nil
  end
  local head, ts, lost, bytes, freed, plain, total = log_state(stored[3])
  local w = {
    meta = meta, log = log, now_ms = now, payload_head = payload_head, line = stored[2], head = tonumber(head),
    opened_head = tonumber(head), stamp = digits(math.max(now, tonumber(ts))), lost = tonumber(lost), bytes = bytes,
    freed = tonumber(freed), plain = plain ~= head and plain, total = total, channels = {}, gateways = '', receivers = 0,
    asks = '',
  }
  for lease, gateway in string.gmatch(redis.call('GET', gws) or '', '(%d+) ([^\n]+)') do
    if tonumber(lease) > now then
      w.channels[#w.channels + 1] = 'rr:ch:' .. gateway
      w.gateways = w.gateways .. '\n' .. gateway
    end
  end
  return w
end

-- Like a message of `append`: `class` with `+<bytes of the escaped text and its quote>` if its text counts, `body` the payload
-- without its closing brace. `is_kept`: a kept item that can rebuild it. A run that is named and not known begins; one that
-- has ended must not be named. Returns its seq and frame.
local function write_message(w, class, name, text_bytes, body, is_kept)
  local call, format, match, sub = redis.call, string.format, string.match, string.sub
  local META, LOG, now, channels, line, stamp = w.meta, w.log, w.now_ms, w.channels, w.line, w.stamp
  local head, lost, bytes, freed, plain, total = w.head, w.lost, w.bytes, w.freed, w.plain, w.total
  local run, mode, text, text_seq, text_kept, thinking, thinking_seq, thinking_kept, origin, lease, run_seq
  local text_key, think_key
  local receivers, log_began, seq = w.receivers, false, nil
  local rest = w.payload_head .. body
  -- include: lib_entry
  w.head, w.lost, w.bytes, w.freed, w.plain, w.total, w.receivers = head, lost, bytes, freed, plain, total, receivers
  if mode then
    store_run(META, run, { mode = mode, last = run_seq, lease = lease, text = text, text_seq = text_seq,
      text_kept = text_kept, thinking = thinking, thinking_seq = thinking_seq, thinking_kept = thinking_kept }, origin)
  end
  return head, frame
end

-- The head for the caller, once everything is written.
local function writer_head(w)
  if HOLDS and w.head > w.opened_head and not w.is_held then
    hold(w.meta, w.opened_head, w.head, w.asks)
    w.is_held = true
  end
  return told_head(seen_head(w.meta, w.head))
end

-- A script that has written nothing does not keep the log alive.
local function close_writer(w)
  writer_head(w)
  if w.head > w.opened_head then
    redis.call('HSET', w.meta, 'log', table.concat({ digits(w.head), w.stamp, digits(w.lost), w.bytes, digits(w.freed),
      w.plain or digits(w.head), w.total }, ' '))
    redis.call('PEXPIRE', w.log, LOG_STEP_MS * 4)
  end
  keep(w.meta, META_MS)
  keep(w.clients, META_MS)
end

-- Ends an open run for somebody who is not its writer. Returns the seq of its run_end and the payload.
local function end_run(w, run, reason, members)
  local body = end_body(run, read_run(w.meta, run), reason, members)
  return write_message(w, 'e', run, '0', body, false), body .. '}'
end

-- For `more` runs that are to be open beside those of now: what is too much ends as `abandoned`. False: there is no room.
local function make_room(w, more, named)
  local surplus = surplus_runs(w.meta, more, named)
  for _, state in ipairs(surplus or {}) do
    local body = end_body(state.name, state, 'abandoned', '')
    tell_writer(w.meta, state.name, body .. '}')
    write_message(w, 'e', state.name, '0', body, false)
  end
  return surplus ~= nil
end
