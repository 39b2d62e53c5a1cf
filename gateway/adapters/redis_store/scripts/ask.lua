#!lua flags=allow-oom
-- ask: one ask as it is, open or resolved; a gateway where somebody waits for it is told when it is resolved.
-- KEYS 1 kept
-- ARGV 1 ask, 2 gateway or empty, 3 1: it is not told any more
-- Result: nil, or an array: lines of text, record, frame, resolution
--   <status> <seq> <ms until it expires, or its outcome is forgotten>

-- include: lib_server
-- include: lib_askrecord

local KEPT, name, watcher = KEYS[1], ARGV[1], ARGV[2]
local now = clock()
local open = redis.call('HGET', KEPT, 'a:' .. name)
local stored = open or redis.call('HGET', KEPT, 'r:' .. name)
if not stored then
  return nil
end
if open and watcher ~= '' then
  local watchers = redis.call('HGET', KEPT, 'w:' .. name) or ''
  if ARGV[3] == '1' then
    local others = {}
    for gateway in string.gmatch(watchers, '[^\n]+') do
      others[#others + 1] = gateway ~= watcher and gateway or nil
    end
    if #others == 0 then
      redis.call('HDEL', KEPT, 'w:' .. name)
    else
      redis.call('HSET', KEPT, 'w:' .. name, table.concat(others, '\n'))
    end
  elseif not string.find('\n' .. watchers .. '\n', '\n' .. watcher .. '\n', 1, true) then
    redis.call('HSET', KEPT, 'w:' .. name, watchers == '' and watcher or watchers .. '\n' .. watcher)
  end
end
local ask = parse_ask(stored)
return { ask.status .. '\n' .. ask.seq .. '\n' .. digits(math.max(0, ask.expiry - now)), ask.record, ask.frame, ask.resolution }
