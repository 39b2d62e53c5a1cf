#!lua flags=no-writes
-- heads: where one session's log stands.
-- KEYS 1 meta
-- ARGV 1 incarnation
-- Result, lines of text: <line, empty without meta> <told head> <1 if meta names another server than this one>

-- include: lib_server
-- include: lib_visible

local meta = redis.call('HMGET', KEYS[1], 'inc', 'line', 'log', 'state')
if not meta[1] or not meta[3] or meta[4] == 'deleted' then
  return '\n0\n0'
end
local is_stale = (meta[1] ~= ARGV[1] or VERIFY_EVERY_CALL) and meta[1] ~= server_incarnation()
local head = tonumber((log_state(meta[3])))
return meta[2] .. '\n' .. told_head(seen_head(KEYS[1], head)) .. (is_stale and '\n1' or '\n0')
