#!lua flags=no-writes
-- page: retained entries above a seq of the current line, with the log's state in the same instant.
-- KEYS 1 meta, 2 log
-- ARGV 1 incarnation, 2 after seq, 3 bytes
-- Result: array: lines of text, `forks`, entries
--   p <epoch> <head> <lost> <void>
--   m   no meta, or a tombstone
--   s   meta names another server than this one: call `enter`, then again

-- include: lib_server
-- include: lib_page

local meta = redis.call('HMGET', KEYS[1], 'inc', 'epoch', 'head', 'lost', 'forks', 'state', 'plain', 'void')
if not meta[1] or not meta[3] or meta[6] == 'deleted' then
  return { 'm' }
end
if (meta[1] ~= ARGV[1] or VERIFY_EVERY_CALL) and meta[1] ~= server_incarnation() then
  return { 's' }
end
local head = tonumber(meta[3])
local lost = lost_seq(KEYS[2], head, tonumber(meta[4]))
local entries = read_page(KEYS[2], tonumber(ARGV[2]), lost, head, tonumber(ARGV[3]))
local void = void_seq(KEYS[1], KEYS[2], head, lost, meta[7], meta[8], clock())
return { 'p\n' .. meta[2] .. '\n' .. meta[3] .. '\n' .. digits(lost) .. '\n' .. digits(void), meta[5], entries }
