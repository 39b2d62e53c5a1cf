#!lua flags=allow-oom
-- release: a connection ended; its route goes if connection and generation still own it (failure catalogue R12).
-- KEYS 1 meta, 2 clients, 3 routes, 4 gws
-- ARGV 1 gateway, 2 client, 3 connection, 4 generation, or `0` when its claim was not answered: connection ids are given
--      once, so whatever generation it got is its own, 5 line at its claim, 6 acked seq on that line or empty, 7 `1` if it was
--      live
-- Result: 1 when it owned the route, else 0

-- include: lib_server
-- include: lib_routes
-- include: lib_clients

local META, CLIENTS, ROUTES, GWS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local gateway, client, connection, generation, was_live = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[7] == '1'
local now, now_us = clock()
local live = read_routes(ROUTES, now)
local route = live[client]
if route and generation == '0' and route.connection == connection then
  generation = route.generation
end
local is_owner = route and owns(route, connection, generation)
local is_former = route and is_previous(route, connection, generation)

if (is_owner or is_former) and ARGV[6] ~= '' and redis.call('HGET', META, 'state') == 'live' then
  local known = read_client(CLIENTS, client)
  acknowledge(known, ARGV[5], ARGV[6])
  store_client(CLIENTS, client, known, now)
end
if is_former then
  forget_previous(route)
  store_route(ROUTES, client, route)
elseif is_owner and route.previous_connection ~= '' and not was_live then
  route.gateway, route.connection = route.previous_gateway, route.previous_connection
  route.since = route.previous_generation
  route.capabilities = route.previous_capabilities
  route.generation, route.lease = next_generation(META, now_us), now + LEASE_MS
  forget_previous(route)
  store_route(ROUTES, client, route)
  redis.call('PEXPIRE', ROUTES, math.floor(LEASE_MS * 4 / 3))
  keep_gateway(GWS, route.gateway, route.lease, now)
  tell('1t', META, route.gateway, client, route.connection, route.generation)
elseif is_owner then
  if route.previous_connection ~= '' then
    tell('1v', META, route.previous_gateway, client, route.previous_connection)
  end
  redis.call('HDEL', ROUTES, client)
  live[client] = nil
end
drop_unused_gateway(GWS, live, gateway)
return is_owner and 1 or 0
