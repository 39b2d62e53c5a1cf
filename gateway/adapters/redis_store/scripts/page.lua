#!lua flags=no-writes
-- page: retained entries above a seq of the current line, with the log's state in the same instant.
-- KEYS 1 meta, 2 log
-- ARGV 1 incarnation, 2 after seq, 3 bytes
-- Result: array: lines of text, `forks`, entries, then run, client, seen seq and seen at of each cut of the session
--   p <epoch> <told head> <lost> <void>
--   m   no meta, or a tombstone
--   s   meta names another server than this one: call `enter`, then again

-- include: lib_server
-- include: lib_page

local meta = redis.call('HMGET', KEYS[1], 'inc', 'epoch', 'log', 'forks', 'state', 'void', 'runs')
if not meta[1] or not meta[3] or meta[5] == 'deleted' then
  return { 'm' }
end
if (meta[1] ~= ARGV[1] or VERIFY_EVERY_CALL) and meta[1] ~= server_incarnation() then
  return { 's' }
end
local head, lost, held = bounds(KEYS[1], KEYS[2], meta[3])
local entries = read_page(KEYS[2], tonumber(ARGV[2]), lost, head, tonumber(ARGV[3]))
local void = void_seq(KEYS[1], KEYS[2], head, lost, meta[3], meta[6], clock())
-- Who reads on learns of interrupts whose notice it did not get: the bus is at most once.
local cuts = {}
for run in string.gmatch(meta[7] or '', '[^\n]+') do
  for client, seq, at in string.gmatch(redis.call('HGET', KEYS[1], 'x:' .. run) or '', '([^\n]+)\t(%d*)\t(%d*)') do
    local place = #cuts
    cuts[place + 1], cuts[place + 2], cuts[place + 3], cuts[place + 4] = run, client, seq, at
  end
end
return { table.concat({ 'p', meta[2], told_head(head, held), digits(lost), digits(void) }, '\n'), meta[4], entries, cuts }
