#!lua
-- take: items of one shard under a lease: those whose lease ended first, then new ones, each kind in order.
-- KEYS 1 stream, 2 its bytes, 3 waiters, 4 dead letters
-- ARGV 1 consumer, 2 at most so many, 3 lease (ms), 4 gateway that is told of the next deposit when there is nothing, or empty
-- Result: array: entry, item, deliveries, ...

-- include: lib_server
-- include: lib_inbox

local INBOX, BYTES, WAITERS, DEAD = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease_ms, limit = ARGV[3], tonumber(ARGV[2])
local holder = lease_ms .. ' ' .. ARGV[1]
local taken, ids, holders = {}, {}, {}

local function give(id, item, deliveries)
  taken[#taken + 1], taken[#taken + 2], taken[#taken + 3] = id, item, deliveries
  ids[#ids + 1] = id
end

if redis.call('EXISTS', INBOX) == 1 then
  local cursor = '-'
  while #ids < limit do
    local late = redis.call('XPENDING', INBOX, GROUP, 'IDLE', IDLE_BASE_MS, cursor, '+', limit - #ids)
    for i = 1, #late do
      local id, item, deliveries = late[i][1], item_of(INBOX, late[i][1]), late[i][4]
      cursor = '(' .. id
      if not item then
        redis.call('XACK', INBOX, GROUP, id)
      elseif deliveries < INBOX_MAX_DELIVERIES or not bury_item(INBOX, BYTES, DEAD, id, item, 'deliveries', holders) then
        holders[late[i][2]] = true
        redis.call('XCLAIM', INBOX, GROUP, holder, 0, id, 'RETRYCOUNT', deliveries + 1, 'JUSTID')
        give(id, item, deliveries + 1)
      end
    end
    if #late == 0 then
      break
    end
  end
  if #ids < limit then
    local read = redis.call('XREADGROUP', 'GROUP', GROUP, holder, 'COUNT', limit - #ids, 'STREAMS', INBOX, '>')
    local fresh = read and read[1][2] or {}
    for i = 1, #fresh do
      give(fresh[i][1], fresh[i][2][2], 1)
    end
  end
  if #ids > 0 then
    local claim = { 'XCLAIM', INBOX, GROUP, holder, 0 }
    for i = 1, #ids do
      claim[#claim + 1] = ids[i]
    end
    claim[#claim + 1], claim[#claim + 2] = 'IDLE', IDLE_BASE_MS - lease_ms
    claim[#claim + 1] = 'JUSTID'
    redis.call(unpack(claim))
  end
  holders[holder] = #ids == 0 or nil
  tidy(INBOX, BYTES, holders)
end
if #ids == 0 and ARGV[4] ~= '' then
  local now = clock()
  redis.call('ZADD', WAITERS, digits(now + WAITER_MS), ARGV[4])
  redis.call('ZREMRANGEBYSCORE', WAITERS, '-inf', digits(now))
  keep(WAITERS, WAITER_MS)
end
return taken
