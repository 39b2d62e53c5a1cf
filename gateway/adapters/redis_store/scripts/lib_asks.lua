-- Asks: opening, resolving, expiring. Included after lib_write and lib_outbox.

-- include: lib_askrecord

-- What an ask is told to its gateways: UTC, milliseconds; always so many characters in its frame.
local EXPIRY_CHARS = #',"expiresAt":"2026-01-01T00:00:00.000Z"'

local function iso_time(ms)
  local days = math.floor(ms / 86400000) + 719468
  local era = math.floor(days / 146097)
  local day = days - era * 146097
  local year = math.floor((day - math.floor(day / 1460) + math.floor(day / 36524) - math.floor(day / 146096)) / 365)
  local year_day = day - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local shifted = math.floor((5 * year_day + 2) / 153)
  local month = shifted < 10 and shifted + 3 or shifted - 9
  local rest = ms % 86400000
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year + era * 400 + (month <= 2 and 1 or 0), month,
    year_day - math.floor((153 * shifted + 2) / 5) + 1, math.floor(rest / 3600000), math.floor(rest / 60000) % 60,
    math.floor(rest / 1000) % 60, rest % 1000)
end

-- Ids of those under one prefix: `a:`, `r:`.
local function ask_names(kept, prefix)
  local names, fields = {}, redis.call('HKEYS', kept)
  for i = 1, #fields do
    if string.sub(fields[i], 1, 2) == prefix then
      names[#names + 1] = string.sub(fields[i], 3)
    end
  end
  return names
end

-- The oldest outcomes go when there are too many, and those whose time is over. Returns when the next one is due.
local function prune_resolved(kept, now)
  local names, kept_until, oldest, next_expiry = ask_names(kept, 'r:'), {}, nil, nil
  local count = #names
  for i = 1, #names do
    kept_until[names[i]] = parse_ask(redis.call('HGET', kept, 'r:' .. names[i])).expiry
  end
  table.sort(names, function(one, two)
    return kept_until[one] < kept_until[two]
  end)
  for i = 1, #names do
    if kept_until[names[i]] <= now or count > ASKS_RESOLVED_MAX then
      redis.call('HDEL', kept, 'r:' .. names[i])
      count = count - 1
    else
      next_expiry = next_expiry or kept_until[names[i]]
    end
  end
  return next_expiry
end

-- `body`: the payload of `ask_resolved` without its closing brace. An ask that is no longer kept cannot be rebuilt once the
-- log has lost it: who comes from below is told so.
local function resolve_ask(w, kept, name, ask, status, body)
  write_message(w, 'o', '', '0', body, false)
  ask.status, ask.resolution, ask.expiry = status, body .. '}', w.now_ms + ASK_RESOLVED_MS
  redis.call('HSET', kept, 'r:' .. name, pack_ask(ask)) -- first: an empty hash would lose its time to live
  redis.call('HDEL', kept, 'a:' .. name)
  raise_void(w.meta, ask.seq)
  prune_resolved(kept, w.now_ms)
  local watchers = redis.call('HGET', kept, 'w:' .. name)
  if watchers then
    for gateway in string.gmatch(watchers, '[^\n]+') do
      redis.call('PUBLISH', 'rr:ch:' .. gateway, '1q\n' .. string.sub(w.meta, 5, -7) .. '\n' .. name)
    end
    redis.call('HDEL', kept, 'w:' .. name)
  end
end

local function ended_ask_body(name, ask, status)
  return '{"kind":"ask_resolved","ask":' .. json_text(name) .. (ask.run ~= '' and ',"run":' .. json_text(ask.run) or '')
    .. ',"status":"' .. status .. '"'
end

-- Open asks of a run that was stopped or abandoned: nobody waits for their answers.
local function cancel_asks(w, kept, run)
  for _, name in ipairs(ask_names(kept, 'a:')) do
    local ask = parse_ask(redis.call('HGET', kept, 'a:' .. name))
    if ask.run == run then
      resolve_ask(w, kept, name, ask, 'c', ended_ask_body(name, ask, 'cancelled'))
    end
  end
end

-- Open asks whose time is over; the agent is told. Returns how many, how many stay open, and when the next one is due.
local function expire_asks(w, kept, outbox, session, names_json)
  local expired, stay, next_expiry = 0, 0, nil
  for _, name in ipairs(ask_names(kept, 'a:')) do
    local ask = parse_ask(redis.call('HGET', kept, 'a:' .. name))
    if ask.expiry <= w.now_ms then
      local run = ask.run ~= '' and ',"run":' .. json_text(ask.run) or ''
      put_outbox(outbox, event_item(w, names_json, 'ask:' .. id_part(session) .. ':' .. id_part(name), 'expired',
        ',"ask":' .. json_text(name) .. run))
      resolve_ask(w, kept, name, ask, 'e', ended_ask_body(name, ask, 'expired'))
      expired = expired + 1
    else
      stay = stay + 1
      next_expiry = math.min(next_expiry or ask.expiry, ask.expiry)
    end
  end
  return expired, stay, next_expiry
end
