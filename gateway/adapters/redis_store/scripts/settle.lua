#!lua flags=allow-oom
-- settle: a connection claimed with `replaces` is live; the one before it ends with MOVED.
-- KEYS 1 meta, 2 routes, 3 gws
-- ARGV 1 client, 2 connection, 3 generation
-- Result: 1, or 0 when it neither owns the route nor still receives beside a newer one that is not live yet

-- include: lib_server
-- include: lib_routes

local META, ROUTES, client = KEYS[1], KEYS[2], ARGV[1]
local now = clock()
local live = read_routes(ROUTES, now)
local route = live[client]
if not route or not owns(route, ARGV[2], ARGV[3]) then
  return route and is_previous(route, ARGV[2], ARGV[3]) and 1 or 0
end
if route.previous_connection ~= '' then
  tell('1v', META, route.previous_gateway, client, route.previous_connection)
  local left = route.previous_gateway
  forget_previous(route)
  store_route(ROUTES, client, route)
  drop_unused_gateway(KEYS[3], live, left)
end
return 1
