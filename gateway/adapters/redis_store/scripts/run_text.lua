#!lua flags=no-writes
-- run_text: a piece of a run's kept text, as it is kept: JSON-escaped.
-- KEYS 1 meta, 2 the text
-- ARGV 1 incarnation, 2 run, 3 `text` or `thinking`, 4 first byte, 5 last byte
-- Result: array
--   t, <line> <first seq of the run> <kept UTF-8 bytes>, piece
--   n   there is no such run
--   s   meta names another server than this one: call `enter`, then again

-- include: lib_server
-- include: lib_runs

local meta = redis.call('HMGET', KEYS[1], 'inc', 'line')
if not meta[2] then
  return { 'n' }
end
if (meta[1] ~= ARGV[1] or VERIFY_EVERY_CALL) and meta[1] ~= server_incarnation() and meta[1] ~= '-' then
  return { 's' }
end
local state = read_run(KEYS[1], ARGV[2])
if not state or (state.mode == 'e' and tonumber(state.lease) <= clock()) then
  return { 'n' }
end
local kept = ARGV[3] == 'text' and state.text_kept or state.thinking_kept
return { 't', meta[2] .. '\n' .. state.first .. '\n' .. kept, redis.call('GETRANGE', KEYS[2], ARGV[4], ARGV[5]) }
