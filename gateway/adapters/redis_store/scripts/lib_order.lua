-- The reorder window (design.md 6). The pending hash: `#` the index, a line for each message that waits: `<number> <waits
-- since ms> <bytes> <epoch> <c|r> <producer>`, c: `contiguous`, r: `reorder`; and for each line a field `<number> <epoch>
-- <producer>`: `<class> <text bytes> <kept ms, or 0> <run>`, newline, body; or `!<code>`: that number was refused.

-- include: lib_answers

local WINDOW_LINE = '^(%d+) (%d+) (%d+) (%d+) (%a) (.*)$'

local function read_window(pending)
  local waiting = {}
  for line in string.gmatch(redis.call('HGET', pending, '#') or '', '[^\n]+') do
    local number, since, size, epoch, order, producer = string.match(line, WINDOW_LINE)
    waiting[#waiting + 1] = { number = tonumber(number), since = tonumber(since), size = tonumber(size), epoch = epoch,
      order = order, producer = producer, is_stored = true, field = number .. ' ' .. epoch .. ' ' .. producer }
  end
  return waiting
end

local function store_window(pending, waiting)
  if #waiting == 0 then
    redis.call('DEL', pending)
    return
  end
  local lines = {}
  for i, it in ipairs(waiting) do
    lines[i] = digits(it.number) .. ' ' .. digits(it.since) .. ' ' .. digits(it.size) .. ' ' .. it.epoch .. ' '
      .. it.order .. ' ' .. it.producer
  end
  redis.call('HSET', pending, '#', table.concat(lines, '\n'))
  redis.call('PEXPIRE', pending, math.floor(META_MS * 4 / 3))
end

-- When the first of them has waited long enough, or nil.
local function window_due(waiting)
  local due
  for _, it in ipairs(waiting) do
    due = math.min(due or it.since, it.since)
  end
  return due and due + ORDER_WINDOW_MS
end

-- The message of a number, as the window holds it: class, text bytes, kept ms, run, body; or `code`.
local function unpack_message(text)
  if string.sub(text, 1, 1) == '!' then
    return { code = string.sub(text, 2) }
  end
  local class, text_bytes, kept_ms, run, at = string.match(text, '^(%S+) (%d+) (%d+) ([^\n]*)\n()')
  return { class = class, text_bytes = text_bytes, kept_ms = tonumber(kept_ms), run = run, body = string.sub(text, at) }
end

local function pack_message(it)
  if it.code then
    return '!' .. it.code
  end
  return it.class .. ' ' .. it.text_bytes .. ' ' .. digits(it.kept_ms) .. ' ' .. it.run .. '\n' .. it.body
end

-- The code with which a run refuses a message of somebody who is not its writer, or nil. `state`: nil where it is to begin.
local function run_refusal(state, class)
  if state and state.mode == 'e' then
    return 'run_ended'
  elseif state and state.writer ~= '0' and class ~= 'l' then
    return 'has_writer'
  end
end

-- Into the log, or refused: `=<seq - number>` or `!<code>@<head>`.
local function write_numbered(w, kept, number, message)
  local code = message.code
  if not code and message.run ~= '' then
    local state = read_run(w.meta, message.run)
    code = run_refusal(state, message.class)
    if not state then
      make_room(w, 1, {})
    end
  end
  if code then
    return '!' .. code .. '@' .. digits(w.head)
  end
  local seq, frame = write_message(w, message.class, message.run, message.text_bytes, message.body, message.kept_ms > 0)
  if message.kept_ms > 0 then
    keep_message(w, kept, seq, frame, message.kept_ms)
  end
  return '=' .. digits(seq - number)
end

-- A late one says so; then it is no longer just its text, so it is not merged with others.
local function mark_late(message)
  if message.code then
    return
  end
  message.body = '{"late":true,' .. string.sub(message.body, 2)
  local class, tail = string.match(message.class, '^(.)(.*)$')
  if class == 't' then
    message.class, message.text_bytes = 'o', '0'
  elseif class == 'd' then
    message.class = 'o' .. tail
  end
end

-- The hole below `number` will not be filled any more.
local function give_up(w, its, number, order)
  local first, last = its.last + 1, number - 1
  if first > last then
    return
  end
  if order == 'c' then
    local name = string.gsub(string.gsub(its.producer, '^/push/', ''), '^/push$', 'push')
    write_message(w, 'o', '', '0', '{"kind":"producer_gap","producer":' .. json_text(name) .. ',"first":' .. digits(first)
      .. ',"last":' .. digits(last) .. ',"reason":"missing"', false)
    w.gaps = (w.gaps or 0) + 1
  end
  append_answer(its, first, '-', last)
end

-- Take from `waiting` what is next for one producer and epoch, and deliver it; `bodies` holds what is not stored yet.
local function drain(w, kept, pending, waiting, its, bodies)
  local place = 1
  local by_number = {}
  for _, it in ipairs(waiting) do
    if it.producer == its.producer and it.epoch == its.epoch then
      by_number[it.number] = it
    end
  end
  local it = by_number[its.last + 1]
  while it do
    local message = bodies[it.field] or unpack_message(redis.call('HGET', pending, it.field))
    append_answer(its, it.number, write_numbered(w, kept, it.number, message), it.number)
    if it.is_stored then
      redis.call('HDEL', pending, it.field)
    end
    it.is_gone, w.released = true, (w.released or 0) + 1
    it = by_number[its.last + 1]
  end
  while place <= #waiting do
    local one = waiting[place]
    local is_ours = one.producer == its.producer and one.epoch == its.epoch
    if one.is_gone or (is_ours and one.number <= its.last) then
      if not one.is_gone and one.is_stored then
        redis.call('HDEL', pending, one.field)
      end
      table.remove(waiting, place)
    else
      place = place + 1
    end
  end
end

-- The lowest number of a producer's epoch that waits.
local function lowest_of(waiting, producer, epoch)
  local lowest
  for _, it in ipairs(waiting) do
    if it.producer == producer and it.epoch == epoch and (not lowest or it.number < lowest.number) then
      lowest = it
    end
  end
  return lowest
end

-- The hole that `it` waits for is given up. `records`: those that are open, by producer.
local function advance(w, kept, pending, waiting, it, records, bodies)
  local its = records[it.producer]
  if not its or its.epoch ~= it.epoch then
    its = open_record(w.meta, it.producer, it.epoch)
    its.meta = w.meta
    if its.known_epoch and its.known_epoch ~= it.epoch then
      its.is_former = true -- a newer epoch goes on meanwhile: what was taken in is delivered, its answers are forgotten
    else
      records[it.producer] = its
    end
  end
  local lowest = lowest_of(waiting, it.producer, it.epoch)
  give_up(w, its, lowest.number, its.is_former and 'r' or it.order)
  drain(w, kept, pending, waiting, its, bodies)
end

-- All that has waited long enough, of every producer, the longest waiting first.
local function release_overdue(w, kept, pending, waiting, records, bodies)
  while true do
    local oldest
    for _, it in ipairs(waiting) do
      if it.since + ORDER_WINDOW_MS <= w.now_ms and (not oldest or it.since < oldest.since) then
        oldest = it
      end
    end
    if not oldest then
      return
    end
    advance(w, kept, pending, waiting, oldest, records, bodies)
  end
end

-- Beyond the bounds the oldest hole is given up at once.
local function release_surplus(w, kept, pending, waiting, records, bodies)
  while true do
    local bytes, oldest = 0, nil
    for _, it in ipairs(waiting) do
      bytes = bytes + it.size
      if not oldest or it.since < oldest.since then
        oldest = it
      end
    end
    if #waiting <= ORDER_MAX_MESSAGES and bytes <= ORDER_MAX_BYTES then
      return
    end
    advance(w, kept, pending, waiting, oldest, records, bodies)
  end
end

-- For scripts that only pass by.
local function release_pending(w, kept, pending)
  local waiting, records = read_window(pending), {}
  local count = #waiting
  if count > 0 then
    release_overdue(w, kept, pending, waiting, records, {})
    for _, its in pairs(records) do
      close_record(its)
    end
    if #waiting < count then
      store_window(pending, waiting)
    end
  end
  return waiting
end
