-- The outbox: what was accepted for the agent and is not yet in the inbox. A stream: `b` bytes put in before it, `i` the item.
-- The stream outlives its entries, so that no id is given twice: a late `relayed` never removes what came after.

local function has_outbox_room(outbox, size)
  local items = redis.call('XLEN', outbox)
  if items == 0 then
    return true
  end
  local first = redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1)[1]
  local last = redis.call('XREVRANGE', outbox, '+', '-', 'COUNT', 1)[1]
  local bytes = last[2][2] + #last[2][4] - first[2][2]
  return items < OUTBOX_MAX_ITEMS and bytes + size <= OUTBOX_MAX_BYTES
end

local function put_outbox(outbox, item)
  local last = redis.call('XREVRANGE', outbox, '+', '-', 'COUNT', 1)[1]
  redis.call('XADD', outbox, '*', 'b', digits(last and last[2][2] + #last[2][4] or 0), 'i', item)
  redis.call('PEXPIRE', outbox, math.floor(META_MS * 4 / 3))
end

-- JSON of a printable id.
local function json_text(text)
  return '"' .. string.gsub(text, '["\\]', '\\%0') .. '"'
end

-- A part of an item's id, as domain/exchange/items.py makes it.
local function id_part(text)
  return (string.gsub(text, '[%%:]', { ['%'] = '%25', [':'] = '%3A' }))
end

-- What a sweep tells the agent, in the shape that gateways give their items. `names`: session, and `"tenant":..,"session":..`
local function event_item(w, names, id, kind, members)
  return '{"id":' .. json_text(id) .. ',"kind":"' .. kind .. '",' .. names .. members .. ',"timestamp":' .. w.stamp .. '}'
end
