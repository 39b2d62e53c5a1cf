-- Reading the log: entries as XRANGE gives them, ascending.

-- Entries have two fields: `h`, `<class> <bytes appended before>` and where there is more to tell ` <at> <text bytes> <p> <run>`,
-- and `f`, the frame. `p` is the last seq before this one that cannot be rebuilt, where that is not the one just before.

-- include: lib_visible

-- Head, the highest seq that is gone for good (everything when the log expired), and how many messages are held above the
-- head, which then is the last one that may be seen.
local function bounds(meta, log, state)
  local head, _, lost = log_state(state)
  head, lost = tonumber(head), tonumber(lost)
  if head > lost and redis.call('EXISTS', log) == 0 then
    lost = head
  end
  local held
  head, held = seen_head(meta, head)
  return head, math.min(lost, head), held
end

-- Highest seq, at most `lost`, that no run's text and no kept item can rebuild. `state` and `void` as meta has them.
local function void_seq(meta, log, head, lost, state, void, now)
  if lost == 0 then
    return 0
  end
  local known
  if lost < head then
    local header = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1][2][2]
    known = tonumber(string.match(header, '^%a %d+ %d* %d* (%d+) ') or lost)
  else
    local plain = select(6, log_state(state))
    known = tonumber(plain)
  end
  known = math.max(known, tonumber(void or 0))
  if known < lost then
    -- Ended runs whose time is over are as good as gone.
    for run in string.gmatch(redis.call('HGET', meta, 'runs') or '', '[^\n]+') do
      local last, retained_until = string.match(redis.call('HGET', meta, 'r:' .. run), '^e (%d+) (%d+)')
      if last and tonumber(retained_until) <= now then
        known = math.max(known, tonumber(last))
      end
    end
  end
  return math.min(known, lost)
end

-- Entries above `after` until their frames have `max_bytes`, at least one when there is one.
local function read_page(log, after, lost, head, max_bytes)
  local entries, bytes, chunk = {}, 0, 16
  local position = math.max(after, lost)
  while position < head do
    local stored = redis.call('XRANGE', log, position + 1, digits(head), 'COUNT', chunk)
    if #stored == 0 then
      break
    end
    for i = 1, #stored do
      local size = #stored[i][2][4]
      if bytes + size > max_bytes and #entries > 0 then
        return entries
      end
      entries[#entries + 1], bytes = stored[i], bytes + size
      if bytes >= max_bytes then
        return entries
      end
    end
    position = tonumber(string.match(stored[#stored][1], '^%d+'))
    -- As many as the rest of the page holds when the next ones are like those before.
    chunk = math.max(1, math.min(256, math.floor((max_bytes - bytes) * #entries / bytes) + 1))
  end
  return entries
end
