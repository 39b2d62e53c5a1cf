-- What may be seen where appends wait for replicas (HOLDS: append.min_replicas > 0). Field `visible` of meta: `<V> <H>`: the
-- messages V + 1 to H are held, nobody may see them before `reveal`; then a line for each ask among them, which nobody was
-- told of. It counts as long as H is the head: a gateway that does not wait shows what it appends with all that lies before.
-- Anything else, as older versions write it: the head.

-- The seq up to which it may be seen, and how many messages are held above it.
local function seen_head(meta, head)
  if HOLDS then
    local visible, upto = string.match(redis.call('HGET', meta, 'visible') or '', '^(%d+) (%d+)')
    if visible and tonumber(upto) == head then
      return tonumber(visible), head - visible
    end
  end
  return head, 0
end

-- `<told head>`, the head as callers are told it: `<seq>`, or `<seq> <messages held above it>`.
local function told_head(seq, held)
  return string.format('%d', seq) .. (held > 0 and ' ' .. string.format('%d', held) or '')
end

-- The messages above `before`, up to `head`, wait for replicas. `asks`: a line for each ask among them.
local function hold(meta, before, head, asks)
  local stored = redis.call('HGET', meta, 'visible') or ''
  local visible, upto, waiting = string.match(stored, '^(%d+) (%d+)(.*)$')
  if not visible or tonumber(upto) ~= before then
    visible, waiting = string.format('%d', before), ''
  end
  redis.call('HSET', meta, 'visible', visible .. ' ' .. string.format('%d', head) .. waiting .. asks)
end
