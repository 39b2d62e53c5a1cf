-- Kept pushes, fields of the kept hash: `k:<seq>` -> `<expiry ms> <frame>`. Bounded; the oldest goes first.

-- Pairs of seq (text) and expiry, ascending; the second value are their bytes.
local function kept_pushes(kept)
  local found, bytes, fields = {}, 0, redis.call('HKEYS', kept)
  for i = 1, #fields do
    local seq = string.match(fields[i], '^k:(%d+)$')
    if seq then
      local text = redis.call('HGET', kept, fields[i])
      found[#found + 1] = { seq = seq, expiry = tonumber(string.match(text, '^%d+')), size = #text }
      bytes = bytes + #text
    end
  end
  table.sort(found, function(one, two)
    return tonumber(one.seq) < tonumber(two.seq)
  end)
  return found, bytes
end

local function drop_kept(w, kept, seq)
  redis.call('HDEL', kept, 'k:' .. seq)
  raise_void(w.meta, seq)
end

-- Meta, clients and the kept hash outlive what is kept, and a day in which no gateway was there to sweep it.
local function outlive(w, kept, clients, value_ms)
  for _, key in ipairs({ kept, w.meta, clients }) do
    keep(key, value_ms + META_MS)
  end
end

local function keep_message(w, kept, seq, frame, kept_ms)
  redis.call('HSET', kept, 'k:' .. seq, digits(w.now_ms + kept_ms) .. ' ' .. frame)
  local found, bytes = kept_pushes(kept)
  local count = #found
  for _, it in ipairs(found) do
    if count <= KEPT_MAX_MESSAGES and bytes <= KEPT_MAX_BYTES then
      break
    end
    drop_kept(w, kept, it.seq)
    count, bytes = count - 1, bytes - it.size
  end
  outlive(w, kept, w.clients, kept_ms)
end

-- Returns how many expired, and when the next one does.
local function expire_kept(w, kept)
  local expired, next_expiry = 0, nil
  for _, it in ipairs((kept_pushes(kept))) do
    if it.expiry <= w.now_ms then
      drop_kept(w, kept, it.seq)
      expired = expired + 1
    else
      next_expiry = math.min(next_expiry or it.expiry, it.expiry)
    end
  end
  return expired, next_expiry
end
