-- An inbox shard: a stream with the consumer group `agents`, there only while something is in it; its bytes; gateways that
-- wait for items; a stream of dead letters. All in one slot.
-- Entry: `i` the item. Dead letter: `i`, `r` reason. Ids are microseconds, so that one is never given twice, also after the
-- stream went and came again.
-- A consumer of the group is called `<lease ms> <consumer>`. An entry's idle time is set to IDLE_BASE_MS - lease when its lease
-- begins: the lease has ended when it is idle for IDLE_BASE_MS.

local GROUP, IDLE_BASE_MS = 'agents', 90000000

local function put_items(inbox, bytes, items)
  if redis.call('EXISTS', inbox) == 0 then
    redis.call('XGROUP', 'CREATE', inbox, GROUP, '0', 'MKSTREAM')
    redis.call('DEL', bytes)
  end
  local _, now_us = clock()
  local last = redis.call('XREVRANGE', inbox, '+', '-', 'COUNT', 1)[1]
  local id = math.max(now_us, last and tonumber(string.match(last[1], '^%d+')) + 1 or 0)
  local size = 0
  for i = 1, #items do
    redis.call('XADD', inbox, digits(id) .. '-' .. i, 'i', items[i])
    size = size + #items[i]
  end
  redis.call('INCRBY', bytes, digits(size))
end

local function item_of(inbox, id)
  local found = redis.call('XRANGE', inbox, id, id)[1]
  return found and found[2][2]
end

-- Out of the shard for good. `holders` collects consumers that held one. True when it was there.
local function remove_item(inbox, bytes, id, item, holders)
  local pending = redis.call('XPENDING', inbox, GROUP, id, id, 1)[1]
  if pending then
    holders[pending[2]] = true
    redis.call('XACK', inbox, GROUP, id)
  end
  redis.call('DECRBY', bytes, #item)
  return redis.call('XDEL', inbox, id) == 1
end

-- An empty shard leaves nothing behind; consumers without an entry are forgotten.
local function tidy(inbox, bytes, holders)
  if redis.call('XLEN', inbox) == 0 then
    redis.call('DEL', inbox, bytes)
    return
  end
  for holder in pairs(holders) do
    if #redis.call('XPENDING', inbox, GROUP, '-', '+', 1, holder) == 0 then
      redis.call('XGROUP', 'DELCONSUMER', inbox, GROUP, holder)
    end
  end
end

local function tell_waiters(waiters, tenant)
  local now = clock()
  local gateways = redis.call('ZRANGEBYSCORE', waiters, digits(now), '+inf')
  for i = 1, #gateways do
    redis.call('PUBLISH', 'rr:ch:' .. gateways[i], '1w\n' .. tenant)
  end
  redis.call('DEL', waiters)
end

-- To the dead letters; false when there is no room or no such item.
local function bury_item(inbox, bytes, dead, id, item, reason, holders)
  if not item or redis.call('XLEN', dead) >= INBOX_MAX_DEAD then
    return false
  end
  local _, now_us = clock()
  local last = redis.call('XREVRANGE', dead, '+', '-', 'COUNT', 1)[1]
  local at = math.max(now_us, last and tonumber(string.match(last[1], '^%d+')) + 1 or 0)
  redis.call('XADD', dead, digits(at) .. '-0', 'i', item, 'r', reason)
  remove_item(inbox, bytes, id, item, holders)
  return true
end
