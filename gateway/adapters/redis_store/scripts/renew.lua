#!lua flags=allow-oom
-- renew: the leases of one gateway's clients of one session, and their acknowledgements (design.md 5.3).
-- KEYS 1 meta, 2 clients, 3 routes, 4 gws
-- ARGV 1 incarnation, 2 nonces, 3 gateway, then for each client: client, connection, generation, line at its claim, acked seq
--      on that line or empty, quality or empty
-- Result, lines of text: <incarnation> <line, empty without meta> <told head>, then for each client:
--   k <generation>   it owns the route, or still receives beside a newer one that is not live yet
--   l                lost: claim again for the same socket (no meta, no route, or another line)
--   s                superseded

-- include: lib_server
-- include: lib_meta
-- include: lib_routes
-- include: lib_clients
-- include: lib_visible

local META, CLIENTS, ROUTES, GWS, gateway = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[3]
local now, now_us = clock()
local state, report = enter(META, ARGV[1], ARGV[2], '', nil)
local meta = state == 'live' and redis.call('HMGET', META, 'line', 'log') or { '', '0' }
local head = tonumber((string.match(meta[2], '^%d+')))
local answers = { report, meta[1], told_head(seen_head(META, head)) }
local live = read_routes(ROUTES, now)
local is_here = false

for i = 4, #ARGV, 6 do
  local client, connection, generation, line, acked = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local route = state == 'live' and live[client]
  local answer = 'l'
  if route then
    answer = 's'
    -- The same connection under another generation: its restoration was told by a notice that got lost.
    local is_owner = route.connection == connection
    if is_owner then
      answer = 'k ' .. route.generation
    elseif is_previous(route, connection, generation) then
      answer = 'k ' .. generation
      if tonumber(route.previous_until) <= now then
        -- The newer one had its time and never became live: this one is the owner again.
        tell('1s', META, route.gateway, client, route.connection)
        is_owner = true
        route.gateway, route.connection, route.generation = gateway, connection, next_generation(META, now_us)
        route.since = generation
        route.capabilities = route.previous_capabilities
        forget_previous(route)
        answer = 'k ' .. route.generation
      else
        is_here = true
      end
    end
    if is_owner then
      is_here = true
      route.lease = now + LEASE_MS
      if ARGV[i + 5] ~= '' then
        route.quality = ARGV[i + 5]
      end
      store_route(ROUTES, client, route)
    end
    if answer ~= 's' then
      local known = read_client(CLIENTS, client)
      if acked ~= '' then
        acknowledge(known, line, acked)
      end
      store_client(CLIENTS, client, known, now)
    end
    -- A route of another line may be older than this connection's claim: a fail-over may have lost that.
    if line ~= meta[1] then
      answer = 'l'
    end
  end
  answers[#answers + 1] = answer
end
if is_here then
  redis.call('PEXPIRE', ROUTES, math.floor(LEASE_MS * 4 / 3))
  keep_gateway(GWS, gateway, now + LEASE_MS, now)
end
if state == 'live' then
  keep_session(META, CLIENTS)
end
return table.concat(answers, '\n')
