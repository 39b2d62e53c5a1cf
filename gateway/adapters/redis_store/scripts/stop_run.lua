#!lua
-- stop_run: interrupt, cancel, or the end by somebody who is not the writer. Nothing of the run is appended after it.
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, 5 kept, 6 outbox, 7 routes, then the two texts of the run
-- ARGV 1 incarnation, 2 head of the frames, 3 run, 4 reason, 5 more members of the payload, 6 client that gets a cut or empty,
--      7 seen seq and 8 seen at, or empty, 9 item for the agent or empty, 10 due note or empty
-- Result: array
--   s, <line> <told head> <1 if it ended now> <seq of its end>, payload of run_end, gateway of its writer or '', gateways of the
--     client, newline between, gateways that the messages went to, newline between
--   n, d   refused: there is no such run, due note stale
--   m      nothing done: call `enter`, then again

-- include: lib_server
-- include: lib_runs
-- include: lib_producers
-- include: lib_write
-- include: lib_routes
-- include: lib_outbox
-- include: lib_asks

local META, KEPT, run, client, item = KEYS[1], KEYS[5], ARGV[3], ARGV[6], ARGV[9]
local seen_seq, seen_at = ARGV[7], ARGV[8]
local now = clock()
local w = open_writer(META, KEYS[2], KEYS[3], ARGV[1], now, ARGV[2])
if not w then
  return { 'm' }
end
w.clients = KEYS[4]
local state = read_run(META, run)
if not state then
  return { 'n' }
end
local is_new = state.mode == 'o'
if is_new and item ~= '' and (ARGV[10] == '' or now - ARGV[10] > DUE_NOTE_MS) then
  return { 'd' }
end

local notice = '\n' .. string.sub(META, 5, -7) .. '\n'
local progress = redis.call('HGET', META, 's:' .. run)
local writer_gateway = progress and string.match(progress, '^%d+ %d+ ([^\n]*)') or ''
local end_seq, payload
if is_new then
  local seen = seen_seq ~= '' and ',"seen":{"seq":' .. seen_seq .. ',"at":' .. seen_at .. '}' or ''
  end_seq, payload = end_run(w, run, ARGV[4], seen .. ARGV[5])
  if item ~= '' then
    put_outbox(KEYS[6], item)
  end
  cancel_asks(w, KEPT, run)
  close_writer(w)
  if writer_gateway ~= '' then
    redis.call('PUBLISH', 'rr:ch:' .. writer_gateway, '1i' .. notice .. run .. '\n' .. payload)
  end
else
  end_seq, payload = state.last, redis.call('HGET', META, 'z:' .. run)
end

-- The client's first cut of the run stays; those who came first go when there are too many.
local client_gateways = {}
if client ~= '' then
  local lines, is_known = {}, false
  for line in string.gmatch(redis.call('HGET', META, 'x:' .. run) or '', '[^\n]+') do
    lines[#lines + 1] = line
    if string.match(line, '^[^\t]*') == client then
      is_known = true
      seen_seq, seen_at = string.match(line, '\t(%d*)\t(%d*)$')
    end
  end
  if not is_known then
    if #lines >= CLIENTS_MAX then
      table.remove(lines, 1)
    end
    lines[#lines + 1] = client .. '\t' .. seen_seq .. '\t' .. seen_at
    redis.call('HSET', META, 'x:' .. run, table.concat(lines, '\n'))
  end
  local stored = redis.call('HGET', KEYS[7], client)
  local route = stored and parse_route(stored)
  if route and route.lease > now then
    client_gateways[1] = route.gateway
    if route.previous_gateway ~= '' and route.previous_gateway ~= route.gateway then
      client_gateways[2] = route.previous_gateway
    end
  end
  for _, gateway in ipairs(client_gateways) do
    redis.call('PUBLISH', 'rr:ch:' .. gateway, '1c' .. notice .. client .. '\n' .. run .. '\n' .. seen_seq .. '\n' .. seen_at
      .. '\n\n')
  end
end
return {
  's',
  table.concat({ w.line, writer_head(w), is_new and '1' or '0', digits(end_seq) }, '\n'),
  payload,
  writer_gateway,
  table.concat(client_gateways, '\n'),
  string.sub(w.gateways, 2),
}
