#!lua
-- claim: a client's newest connection gets its route, a generation, the log's state and the first page of its replay; the
-- connection that it takes the place of is told. One instant (G3, G6).
-- KEYS 1 meta, 2 log, 3 clients, 4 seen, 5 kept, 6 pending, 7 outbox, 8 routes, 9 gws
-- ARGV 1 incarnation, 2 nonces, 3 gateway, 4 connection, 5 client, 6 user, 7 `1` if it may make the session,
--      8 `<epoch>.<fork>` of its cursor, 9 seq of its cursor or bare seq, 10 `start` or `live`, 11 connection that it replaces,
--      12 for a re-claim the generation of its first claim, 13 capabilities, 14 retry count, 15 page bytes; what is absent is
--      empty
-- Result: array: lines of text, then `forks`, then the page's entries, or nil when the position is not on the
-- current line, then run, seen seq and seen at of each cut of the client, then frames of open asks
--   c <incarnation> <generation> <epoch> <told head> <lost> <void> <origin> <line of the position> <seq of the position>
--     <input seq> <lowest seq of a kept push, or empty>
--   r <incarnation> <reason> <after ms>

-- include: lib_server
-- include: lib_meta
-- include: lib_routes
-- include: lib_clients
-- include: lib_page
-- include: lib_askrecord

local META, LOG, CLIENTS, KEPT, ROUTES, GWS = KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[8], KEYS[9]
local gateway, connection, client, replaces = ARGV[3], ARGV[4], ARGV[5], ARGV[11]
local may_create, since, is_reclaim = ARGV[7] == '1', ARGV[12], ARGV[12] ~= ''
local now, now_us = clock()

-- Who may: a session that does not exist, is somebody else's or was deleted answers alike (G11).
local state, report, is_created = enter(META, ARGV[1], ARGV[2], '',
  may_create and { unpack(KEYS, 2, 7) } or nil)
local function refuse(reason, after_ms)
  return { 'r\n' .. report .. '\n' .. reason .. '\n' .. digits(after_ms) }
end
if state ~= 'live' then
  return refuse('not_found', 0)
end
local meta = redis.call('HMGET', META, 'epoch', 'line', 'log', 'forks', 'owner', 'void', 'runs')
if not may_create and meta[5] ~= ARGV[6] then
  return refuse('not_found', 0)
end

local live = read_routes(ROUTES, now)
local current = live[client]
local route = {
  gateway = gateway, connection = connection, lease = now + LEASE_MS, capabilities = ARGV[13],
  takeovers = current and current.takeovers or '',
}
forget_previous(route)
local keeps_route = false

if not current then
  local others = 0
  for _ in pairs(live) do
    others = others + 1
  end
  if others >= CLIENTS_MAX then
    return refuse('too_many_clients', 0)
  end
elseif is_reclaim and current.previous_connection == connection then
  -- The newer connection is not live yet; this one goes on receiving until it is.
  keeps_route = true
elseif is_reclaim and current.connection ~= connection then
  if tonumber(since) <= tonumber(current.since or 0) then
    return refuse('superseded', 0)
  end
  -- A fail-over has lost the claim by which this connection followed the route's: it follows it again. First claims are
  -- in order because one server gave their generations, or the time between servers, which is long beside their clocks'.
  tell('1s', META, current.gateway, client, current.connection)
elseif current.connection == connection then
  -- The same socket again: whatever it replaces stays as it is.
  for _, name in ipairs({ 'previous_gateway', 'previous_connection', 'previous_generation', 'previous_until',
    'previous_capabilities' }) do
    route[name] = current[name]
  end
elseif replaces ~= '' and replaces == current.connection then
  -- Make before break: the old one receives until the new one is live.
  route.previous_gateway, route.previous_connection = current.gateway, current.connection
  route.previous_generation, route.previous_until = current.generation, now + PREVIOUS_MS
  route.previous_capabilities = current.capabilities
  tell('1p', META, current.gateway, client, current.connection)
  if current.previous_connection ~= '' then
    tell('1v', META, current.previous_gateway, client, current.previous_connection)
  end
elseif replaces ~= '' and replaces == current.previous_connection then
  -- The one in between never became live and the client tries again.
  route.previous_gateway, route.previous_connection = current.previous_gateway, current.previous_connection
  route.previous_generation, route.previous_until = current.previous_generation, now + PREVIOUS_MS
  route.previous_capabilities = current.previous_capabilities
  tell('1s', META, current.gateway, client, current.connection)
else
  -- A take-over: at most so many a minute.
  local times = {}
  for time in string.gmatch(current.takeovers, '%d+') do
    if tonumber(time) > now - TAKEOVERS_PERIOD_MS then
      times[#times + 1] = time
    end
  end
  if #times >= TAKEOVERS_MAX then
    return refuse('takeovers', times[1] + TAKEOVERS_PERIOD_MS - now)
  end
  times[#times + 1] = digits(now)
  route.takeovers = table.concat(times, ',')
  tell('1s', META, current.gateway, client, current.connection)
  if current.previous_connection ~= '' then
    tell('1s', META, current.previous_gateway, client, current.previous_connection)
  end
end

local generation
if keeps_route then
  generation = current.previous_generation
else
  generation = next_generation(META, now_us)
  route.generation = generation
  route.since = is_reclaim and since or generation
  store_route(ROUTES, client, route)
  redis.call('PEXPIRE', ROUTES, math.floor(LEASE_MS * 4 / 3))
  if current then
    live[client] = route
    drop_unused_gateway(GWS, live, current.gateway)
    drop_unused_gateway(GWS, live, current.previous_gateway)
  end
end
keep_gateway(GWS, gateway, now + LEASE_MS, now)
local known = read_client(CLIENTS, client)
known.retries = ARGV[14]
store_client(CLIENTS, client, known, now)
keep_session(META, CLIENTS)

-- Where to begin (protocol.md 1).
local head, lost, held = bounds(META, LOG, meta[3])
local origin, line, seq = ARGV[10], '', ''
if is_created then
  origin = 'created'
elseif ARGV[8] ~= '' then
  origin, line, seq = 'cursor', ARGV[8], ARGV[9]
elseif ARGV[9] ~= '' then
  origin, line, seq = 'last_received_seq', meta[2], ARGV[9]
elseif known.cursor ~= '' then
  origin = 'acked'
  line, seq = string.match(known.cursor, '^(.*)%.(%d+)$')
end
local entries = false
if origin == 'live' then
  entries = {}
elseif line == '' or line == meta[2] then
  local after = tonumber(seq) or 0
  entries = read_page(LOG, after > head + held and 0 or after, lost, head, tonumber(ARGV[15]))
end

-- What was cut for this client, and what is kept for those who connect.
local cuts, asks, kept_from = {}, {}, nil
for run in string.gmatch(meta[7] or '', '[^\n]+') do
  for name, seq, at in string.gmatch(redis.call('HGET', META, 'x:' .. run) or '', '([^\n]+)\t(%d*)\t(%d*)') do
    if name == client then
      cuts[#cuts + 1], cuts[#cuts + 2], cuts[#cuts + 3] = run, seq, at
    end
  end
end
local kept = redis.call('HKEYS', KEPT)
for i = 1, #kept do
  local kind, name = string.sub(kept[i], 1, 2), string.sub(kept[i], 3)
  if kind == 'k:' and tonumber(name) <= head then
    kept_from = math.min(kept_from or tonumber(name), tonumber(name))
  elseif kind == 'a:' then
    local ask = parse_ask(redis.call('HGET', KEPT, kept[i]))
    asks[#asks + 1] = tonumber(ask.seq) <= head and ask or nil
  end
end
table.sort(asks, function(one, two)
  return tonumber(one.seq) < tonumber(two.seq)
end)
for i = 1, #asks do
  asks[i] = asks[i].frame
end
return {
  table.concat({ 'c', report, generation, meta[1], told_head(head, held), digits(lost),
    digits(void_seq(META, LOG, head, lost, meta[3], meta[6], now)), origin, line, seq, known.input_seq,
    kept_from and digits(kept_from) or '' }, '\n'),
  meta[4],
  entries,
  cuts,
  asks,
}
