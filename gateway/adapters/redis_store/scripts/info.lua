#!lua flags=no-writes
-- info: what a session is, who is connected where, and how far each client is.
-- KEYS 1 meta, 2 log, 3 clients, 4 routes
-- Result: nil, or an array: lines of text, `forks`, owner or nil, live routes (client, gateway, connection, generation, lease
-- left in ms, acked cursor, capabilities, quality, ...)
--   <state> <epoch> <told head> <lost> <void> <first retained seq> <retained bytes> <last timestamp>

-- include: lib_server
-- include: lib_page
-- include: lib_routes
-- include: lib_clients

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'log', 'forks', 'owner', 'void')
if not meta[1] or not meta[3] then
  return nil
end
local head, lost, held = bounds(KEYS[1], KEYS[2], meta[3])
local _, ts, _, bytes = log_state(meta[3])
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local retained_bytes = first and bytes - string.match(first[2][2], '^%a (%d+)') or 0
local now = clock()
local void = void_seq(KEYS[1], KEYS[2], head, lost, meta[3], meta[6], now)
local routes = {}
local stored = redis.call('HGETALL', KEYS[4])
for i = 1, #stored, 2 do
  local route = parse_route(stored[i + 1])
  if route.lease > now then
    for _, value in ipairs({ stored[i], route.gateway, route.connection, route.generation, route.lease - now,
      read_client(KEYS[3], stored[i]).cursor, route.capabilities or '',
      route.quality or '' }) do
      routes[#routes + 1] = value
    end
  end
end
return {
  table.concat({ meta[1], meta[2], told_head(head, held), digits(lost), digits(void), digits(lost + 1),
    digits(retained_bytes), ts }, '\n'),
  meta[4],
  meta[5],
  routes,
}
