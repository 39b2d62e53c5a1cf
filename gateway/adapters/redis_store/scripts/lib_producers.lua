-- Producer records (G5), fields `p:<name>` of meta: `<epoch> <last number> <what> <segments>`. Segments run-length the
-- answers: `;<first number><what>`, valid up to the next one or `last`. What: `=<seq - number>`, `!<code>@<head then>` of a
-- refusal, or at first `@<head then>`; of those of a reorder window also `-` and `?` (lib_order).

local RECORD = '^(%d+) (%d+) ([^ ]*) (.*)$'

-- The answer that number `n` got: `=<seq>`, `!<code>`, or `=` when that left the window.
local function recall(n, last, segments)
  if n <= last - PRODUCER_WINDOW then
    return '='
  end
  local answer = '='
  for first, what in string.gmatch(segments, ';(%d+)([^;]+)') do
    if tonumber(first) > n then
      break
    end
    answer = what
  end
  if string.sub(answer, 1, 1) == '!' then
    return string.match(answer, '^[^@]+')
  end
  if answer == '-' or answer == '?' then
    return '!late' -- a hole that the reorder window gave up (lib_order)
  end
  return answer == '=' and answer or '=' .. digits(n + string.sub(answer, 2))
end

-- The segments once numbers from `first` to `last` were answered `what`; those that left the window are dropped.
local function extend(segments, first, what, last)
  segments = segments .. ';' .. digits(first) .. what
  while true do
    local second = string.match(segments, '^;[^;]+;(%d+)')
    if not second or tonumber(second) > last - PRODUCER_WINDOW + 1 then
      return segments
    end
    segments = string.match(segments, '^;[^;]+(.*)$')
  end
end

-- The session's head when the producer was last heard of.
local function heard_at(record)
  local _, last, what = string.match(record, RECORD)
  if string.sub(what, 1, 1) == '=' then
    return last + string.sub(what, 2)
  end
  return tonumber(string.match(what, '@(%d+)$'))
end

-- A producer more: the longest idle one goes when there are too many.
local function count_producer(meta)
  if redis.call('HINCRBY', meta, 'producers', 1) > PRODUCERS_MAX then
    local stored = redis.call('HGETALL', meta)
    local idlest, idle_since
    for i = 1, #stored, 2 do
      if string.sub(stored[i], 1, 2) == 'p:' then
        local heard = heard_at(stored[i + 1])
        if not idle_since or heard < idle_since then
          idlest, idle_since = stored[i], heard
        end
      end
    end
    redis.call('HDEL', meta, idlest)
    redis.call('HINCRBY', meta, 'producers', -1)
  end
end

local function add_producer(meta, field, record)
  count_producer(meta)
  redis.call('HSET', meta, field, record)
end

-- The record once numbers from `first` to `upto` were answered `what`.
local function answered(segments, epoch, first, upto, what)
  return epoch .. ' ' .. digits(upto) .. ' ' .. what .. ' ' .. extend(segments, first, what, upto)
end

-- Store that. `record` is what was stored; its segments count if it is of the same epoch.
local function remember(meta, field, record, segments, epoch, first, upto, what)
  if not record then
    count_producer(meta)
  end
  redis.call('HSET', meta, field, answered(segments, epoch, first, upto, what))
end

-- A new epoch, above the one before; its numbers begin at 1. Returns it.
local function new_epoch(meta, field, now_us)
  local stored = redis.call('HMGET', meta, field, 'log')
  if not stored[1] then
    count_producer(meta)
  end
  local epoch = digits(math.max((stored[1] and tonumber(string.match(stored[1], '^%d+')) or 0) + 1, now_us))
  redis.call('HSET', meta, field, epoch .. ' 0 @' .. (log_state(stored[2])) .. ' ')
  return epoch
end
