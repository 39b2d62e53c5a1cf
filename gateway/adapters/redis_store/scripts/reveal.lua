#!lua flags=allow-oom
-- reveal: enough replicas have the log up to a seq: it may be seen, and what was held is published in order.
-- KEYS 1 meta, 2 log, 3 gws, 4 kept
-- ARGV 1 incarnation, 2 line, 3 seq: what was confirmed
-- Result, lines of text:
--   v <told head> <1 if a gateway has the session, and heard of it>
--   m   nothing done: meta is gone, or the log goes on at another server or without that seq

-- include: lib_server
-- include: lib_visible
-- include: lib_askrecord

local META, LOG, KEPT, seq = KEYS[1], KEYS[2], KEYS[4], tonumber(ARGV[3])
local meta = redis.call('HMGET', META, 'inc', 'line', 'log', 'visible')
local head = tonumber((log_state(meta[3])))
if meta[1] ~= ARGV[1] or meta[2] ~= ARGV[2] or not head or seq > head
  or (VERIFY_EVERY_CALL and server_incarnation() ~= ARGV[1]) then
  return 'm'
end
local now = clock()
local channels = {}
for lease, gateway in string.gmatch(redis.call('GET', KEYS[3]) or '', '(%d+) ([^\n]+)') do
  if tonumber(lease) > now then
    channels[#channels + 1] = 'rr:ch:' .. gateway
  end
end

local visible, held = seen_head(META, head)
if seq <= visible then
  -- Somebody else was first, or nothing was held.
  return 'v\n' .. told_head(visible, held) .. (#channels > 0 and '\n1' or '\n0')
end

local key, receivers, position = string.sub(META, 5, -7), 0, visible
local function publish(message)
  for i = 1, #channels do
    receivers = receivers + redis.call('PUBLISH', channels[i], message)
  end
end

-- An ask is told as soon as it is there, before the messages at its place are (protocol.md).
local waiting = ''
for name in string.gmatch(string.match(meta[4], '^%d+ %d+(.*)$'), '[^\n]+') do
  local stored = redis.call('HGET', KEPT, 'a:' .. name)
  local ask = stored and parse_ask(stored)
  if ask and tonumber(ask.seq) > seq then
    waiting = waiting .. '\n' .. name
  elseif ask then
    publish('1a\n' .. key .. '\n' .. ask.frame)
  end
end

while position < seq do
  local entries = redis.call('XRANGE', LOG, position + 1, digits(seq), 'COUNT', 64)
  if #entries == 0 then
    break -- it left the log before it was seen: whoever needs it is told by the next one
  end
  for i = 1, #entries do
    local number, header, frame = string.match(entries[i][1], '^%d+'), entries[i][2][2], entries[i][2][4]
    local class, at, text_bytes, name = string.match(header, '^(%a) %d+ (%d*) (%d*) %d* (.*)$')
    publish('1m\n' .. key .. '\n' .. meta[2] .. '\n' .. number .. '\n' .. (class or string.sub(header, 1, 1)) .. '\n'
      .. (name or '') .. '\n' .. (at or '') .. '\n' .. (text_bytes or '0') .. '\n' .. frame)
    position = tonumber(number)
  end
end
held = head - seq
redis.call('HSET', META, 'visible', held > 0 and digits(seq) .. ' ' .. digits(head) .. waiting or '0')
return 'v\n' .. told_head(seq, held) .. (receivers > 0 and '\n1' or '\n0')
