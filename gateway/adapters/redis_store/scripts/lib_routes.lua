-- Routes: fields of the routes hash, one a client. Thirteen values, tabs between: gateway, connection, generation, lease (ms),
-- capabilities, times of take-overs (ms, commas between), then of the connection that it replaces and that still receives:
-- gateway, connection, generation, until (ms); these four are empty when there is none. Then the generation of the first
-- claim of its connection, and its quality: level and score, empty until a renewal brings it, or from an older gateway. Last the
-- capabilities of the connection that it replaces.
-- Fences compare connection and generation for equality (G6).

local FIELDS = { 'gateway', 'connection', 'generation', 'lease', 'capabilities', 'takeovers', 'previous_gateway',
  'previous_connection', 'previous_generation', 'previous_until', 'since', 'quality', 'previous_capabilities' }

local function parse_route(text)
  local route, i = {}, 0
  for value in string.gmatch(text .. '\t', '([^\t]*)\t') do
    i = i + 1
    if FIELDS[i] then
      route[FIELDS[i]] = value
    end
  end
  route.lease = tonumber(route.lease)
  return route
end

local function store_route(routes, client, route)
  local values = {}
  for i = 1, #FIELDS do
    local value = route[FIELDS[i]] or '' -- a gateway of another version stored fewer
    values[i] = type(value) == 'number' and digits(value) or value
  end
  redis.call('HSET', routes, client, table.concat(values, '\t'))
end

local function forget_previous(route)
  route.previous_gateway, route.previous_connection = '', ''
  route.previous_generation, route.previous_until, route.previous_capabilities = '', '', ''
end

-- Live routes by client; those whose lease ended are removed.
local function read_routes(routes, now)
  local stored = redis.call('HGETALL', routes)
  local live = {}
  for i = 1, #stored, 2 do
    local route = parse_route(stored[i + 1])
    if route.lease > now then
      live[stored[i]] = route
    else
      redis.call('HDEL', routes, stored[i])
    end
  end
  return live
end

local function owns(route, connection, generation)
  return route.connection == connection and route.generation == generation
end

local function is_previous(route, connection, generation)
  return route.previous_connection == connection and route.previous_generation == generation
end

-- Never less than the one before, in meta so that it outlives routes, and above what any lost write may have given out.
local function next_generation(meta, now_us)
  local last = tonumber(redis.call('HGET', meta, 'gen') or 0)
  local generation = digits(math.max(last + 1, now_us))
  redis.call('HSET', meta, 'gen', generation)
  return generation
end

-- Notices (bus messages): kind, session key, client, connection and whatever follows.
local function tell(kind, meta, gateway, ...)
  redis.call('PUBLISH', 'rr:ch:' .. gateway, table.concat({ kind, string.sub(meta, 5, -7), ... }, '\n'))
end

-- A gateway is kept in gws while a route names it, so that appends find it: a string, a line `<lease ms> <gateway>` for each.
-- Those whose lease ended go.
local function store_gateways(gws, now, other_than, more)
  local lines = {}
  for lease, gateway in string.gmatch(redis.call('GET', gws) or '', '(%d+) ([^\n]+)') do
    if gateway ~= other_than and tonumber(lease) > now then
      lines[#lines + 1] = lease .. ' ' .. gateway
    end
  end
  lines[#lines + 1] = more
  if #lines > 0 then
    redis.call('SET', gws, table.concat(lines, '\n'), 'KEEPTTL')
  else
    redis.call('DEL', gws)
  end
end

local function keep_gateway(gws, gateway, lease, now)
  store_gateways(gws, now, gateway, digits(lease) .. ' ' .. gateway)
  redis.call('PEXPIRE', gws, math.floor(LEASE_MS * 4 / 3))
end

local function drop_unused_gateway(gws, live, gateway)
  for _, route in pairs(live) do
    if route.gateway == gateway or route.previous_gateway == gateway then
      return
    end
  end
  store_gateways(gws, 0, gateway)
end
